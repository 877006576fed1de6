"""A small ResNet on 32×32 images (He et al. 2015, section 4.2), one block for each width; and its
answer to one image.
"""

from __future__ import annotations

from itertools import pairwise

from .workload import Target, Workload, classify, images, is_torch, jax_entropy, module

WIDTHS = (16, 32, 64)


def plan(widths=WIDTHS):
    """(width before, width after, stride) of each block."""
    return [(a, b, 1 if a == b else 2) for a, b in pairwise([widths[0], *widths])]


def net(framework, widths=WIDTHS):
    nn, F = framework.nn, framework.nn.functional
    torch = is_torch(framework)
    norm = nn.BatchNorm2d if torch else nn.BatchNorm2D

    def conv(a, b, k, stride):
        if torch:
            return nn.Conv2d(a, b, k, stride, k // 2, bias=False)
        return nn.Conv2D(a, b, k, stride, k // 2, bias_attr=False)

    class Block(module(framework)):
        def __init__(self, a, b, stride):
            super().__init__()
            self.conv1, self.norm1 = conv(a, b, 3, stride), norm(b)
            self.conv2, self.norm2 = conv(b, b, 3, 1), norm(b)
            self.short = None
            if a != b:
                self.short = nn.Sequential(conv(a, b, 1, stride), norm(b))

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + (self.short(x) if self.short else x))

    class ResNet(module(framework)):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = conv(3, widths[0], 3, 1), norm(widths[0])
            self.body = nn.Sequential(*[Block(*each) for each in plan(widths)])
            self.head = nn.Linear(widths[-1], 10)

        def forward(self, x):
            x = self.body(F.relu(self.norm(self.stem(x))))
            return self.head(x.mean([2, 3]))

    return ResNet()


def logits_of(framework):
    return lambda net, x: net(x)


def jax_logits(jax, training: bool):
    """Logits, and the running statistics after them."""
    relu = jax.nn.relu

    def conv(x, kernel, stride):
        pad = kernel.shape[-1] // 2
        return jax.lax.conv_general_dilated(
            x,
            kernel,
            (stride, stride),
            [(pad, pad)] * 2,
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        )

    def forward(w, x):
        buffers = {}

        def normed(x, name):
            mean, variance = w[name + "._mean"], w[name + "._variance"]
            if training:
                old, axes = (mean, variance), (0, 2, 3)
                mean, variance = x.mean(axes), x.var(axes)
                for key, before, now in zip(("mean", "variance"), old, (mean, variance)):
                    buffers[f"{name}._{key}"] = 0.9 * before + 0.1 * now
            scale = w[name + ".weight"] * jax.lax.rsqrt(variance + 1e-5)
            shift = w[name + ".bias"] - mean * scale
            return x * scale[:, None, None] + shift[:, None, None]

        x = relu(normed(conv(x, w["stem.weight"], 1), "norm"))
        for k, (a, b, stride) in enumerate(plan()):
            name = f"body.{k}."
            y = relu(normed(conv(x, w[name + "conv1.weight"], stride), name + "norm1"))
            y = normed(conv(y, w[name + "conv2.weight"], 1), name + "norm2")
            if a != b:
                x = normed(conv(x, w[name + "short.0.weight"], stride), name + "short.1")
            x = relu(x + y)
        return x.mean((2, 3)) @ w["head.weight"] + w["head.bias"], buffers

    return forward


def jax_loss(jax):
    forward = jax_logits(jax, training=True)

    def loss(w, x, y):
        logits, buffers = forward(w, x)
        return jax_entropy(jax, logits, y), buffers

    return loss


def jax_predicts(jax):
    forward = jax_logits(jax, training=False)
    return lambda w, x: forward(w, x)[0]


RESNET = Workload(
    title="ResNet step 16/32/64, 32 images of 32×32",
    target=Target(0.9, "torch.compile", 40.0e-3),
    batch=lambda: images(32, 3, 32),
    net=net,
    apply=classify,
    jax=jax_loss,
)
RESNET_PREDICTS = Workload(
    title="ResNet inference, one image",
    target=Target(0.55, "jax", 0.50e-3),
    batch=lambda: images(1, 3, 32)[:1],
    net=net,
    apply=logits_of,
    jax=jax_predicts,
    kind="predict",
)
