"""LeNet-5 with ReLU and max pooling on 28×28 images (LeCun et al. 1998)."""

from __future__ import annotations

from .workload import Target, Workload, classify, images, is_torch, jax_entropy


def net(framework):
    nn = framework.nn
    torch = is_torch(framework)
    Conv, Pool = (nn.Conv2d, nn.MaxPool2d) if torch else (nn.Conv2D, nn.MaxPool2D)
    return nn.Sequential(
        Conv(1, 6, 5, padding=2),
        nn.ReLU(),
        Pool(2, 2),
        Conv(6, 16, 5),
        nn.ReLU(),
        Pool(2, 2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def jax_loss(jax):
    lax, relu = jax.lax, jax.nn.relu

    def conv(w, name, x, pad):
        pads = [(pad, pad)] * 2
        y = lax.conv_general_dilated(
            x, w[name + ".weight"], (1, 1), pads, dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        return relu(y + w[name + ".bias"][:, None, None])

    def pool(x):
        return lax.reduce_window(x, -float("inf"), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def linear(w, name, x):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def loss(w, x, y):
        x = pool(conv(w, "3", pool(conv(w, "0", x, 2)), 0)).reshape(len(x), -1)
        x = relu(linear(w, "9", relu(linear(w, "7", x))))
        return jax_entropy(jax, linear(w, "11", x), y), {}

    return loss


LENET = Workload(
    title="LeNet step, 64 images of 28×28",
    target=Target(0.9, "torch.compile", 4.80e-3),
    batch=lambda: images(64, 1, 28),
    net=net,
    apply=classify,
    jax=jax_loss,
)
