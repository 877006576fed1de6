"""Autoencoders, adversaries, diffusion, flows. The noise is arithmetic: the numbers are exact."""

import numpy as np

from tests.programs.common import set_weights, wave


def autoencoder(paddle):
    """Eight numbers through two."""
    nn, F = paddle.nn, paddle.nn.functional

    class AutoEncoder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(8, 5), nn.ELU(), nn.Linear(5, 2))
            self.decode = nn.Sequential(nn.Linear(2, 5), nn.ELU(), nn.Linear(5, 8))

        def forward(self, x):
            code = self.encode(x)
            return self.decode(code), code

    net = set_weights(AutoEncoder())
    opt = paddle.optimizer.Adam(0.02, parameters=net.parameters())
    x, losses = paddle.to_tensor(wave(6, 8)), []
    noisy = x + 0.1 * paddle.to_tensor(wave(6, 8, phase=3.0))
    for _ in range(5):
        out, code = net(noisy)
        loss = F.mse_loss(out, x) + 1e-3 * code.abs().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses, code


def variational_autoencoder(paddle):
    """The reparameterized sample and the two terms of the loss."""
    nn, F = paddle.nn, paddle.nn.functional

    class VAE(nn.Layer):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(6, 5)
            self.mean, self.log_variance = nn.Linear(5, 2), nn.Linear(5, 2)
            self.decoder = nn.Sequential(nn.Linear(2, 5), nn.Softplus(), nn.Linear(5, 6))

        def forward(self, x, noise):
            h = F.silu(self.hidden(x))
            mean, log_variance = self.mean(h), self.log_variance(h)
            z = mean + noise * paddle.exp(0.5 * log_variance)
            return self.decoder(z), mean, log_variance

    net = set_weights(VAE())
    opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    x = paddle.to_tensor((wave(5, 6) > 0).astype("float32"))
    terms = []
    for step in range(4):
        out, mean, log_variance = net(x, paddle.to_tensor(wave(5, 2, phase=step)))
        rebuilt = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
        kl = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        ((rebuilt + kl) / 5).backward()
        opt.step()
        opt.clear_grad()
        terms.append([rebuilt, kl])
    return terms


def adversarial_networks(paddle):
    """Two optimizers in turn; the generator's fakes are detached for the critic."""
    nn = paddle.nn
    generator = set_weights(nn.Sequential(nn.Linear(2, 6), nn.LeakyReLU(0.2), nn.Linear(6, 3)))
    critic = set_weights(nn.Sequential(nn.Linear(3, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1)))
    g_opt = paddle.optimizer.Adam(0.01, beta1=0.5, parameters=generator.parameters())
    c_opt = paddle.optimizer.Adam(0.01, beta1=0.5, parameters=critic.parameters())
    bce = nn.BCEWithLogitsLoss()
    real = paddle.to_tensor(wave(8, 3) + 1.0)
    history = []
    for step in range(4):
        fake = generator(paddle.to_tensor(wave(8, 2, phase=step)))
        c_loss = bce(critic(real), paddle.ones([8, 1])) + bce(
            critic(fake.detach()), paddle.zeros([8, 1])
        )
        c_loss.backward()
        c_opt.step()
        c_opt.clear_grad()
        g_loss = bce(critic(fake), paddle.ones([8, 1]))
        g_loss.backward()
        g_opt.step()
        g_opt.clear_grad()
        c_opt.clear_grad()
        history.append([c_loss, g_loss])
    return history, generator[0].bias


def deconvolution_generator(paddle):
    """A small DCGAN generator: vectors become pictures."""
    nn = paddle.nn
    net = nn.Sequential(
        nn.Conv2DTranspose(4, 3, 3), nn.BatchNorm2D(3), nn.ReLU(),
        nn.Conv2DTranspose(3, 1, 4, stride=2, padding=1), nn.Tanh(),
    )  # fmt: skip
    set_weights(net)
    pictures = net(paddle.to_tensor(wave(2, 4, 1, 1)))
    pictures.square().mean().backward()
    return pictures, net[0].weight.grad[0], net[1].weight.grad


def diffusion_step(paddle):
    """Noise schedule, closed-form noising, one step of learning to see the noise."""
    nn, F = paddle.nn, paddle.nn.functional
    betas = paddle.linspace(1e-3, 0.2, 8)
    alphas = paddle.cumprod(1.0 - betas, dim=0)
    t = paddle.to_tensor([0, 3, 7])
    x, noise = paddle.to_tensor(wave(3, 4)), paddle.to_tensor(wave(3, 4, phase=2.0))
    level = paddle.gather(alphas, t).unsqueeze(-1)
    noisy = paddle.sqrt(level) * x + paddle.sqrt(1 - level) * noise
    net = set_weights(nn.Linear(5, 4))
    seen = paddle.concat([noisy, t.astype("float32").unsqueeze(-1) / 8], axis=-1)
    loss = F.mse_loss(net(seen), noise)
    loss.backward()
    return alphas, noisy, loss, net.weight.grad


def normalizing_flow(paddle):
    """An affine coupling layer: inverse and log-determinant."""
    nn = paddle.nn
    net = set_weights(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4)))

    def forward(x):
        kept, moved = paddle.split(x, 2, axis=1)
        log_scale, shift = paddle.split(net(kept), 2, axis=1)
        log_scale = paddle.tanh(log_scale)
        return paddle.concat([kept, moved * log_scale.exp() + shift], 1), log_scale.sum(axis=1)

    def inverse(y):
        kept, moved = paddle.split(y, 2, axis=1)
        log_scale, shift = paddle.split(net(kept), 2, axis=1)
        return paddle.concat([kept, (moved - shift) * paddle.exp(-paddle.tanh(log_scale))], 1)

    x = paddle.to_tensor(wave(3, 4))
    y, log_det = forward(x)
    nll = 0.5 * (y**2).sum(axis=1) + 2 * np.log(2 * np.pi) - log_det
    nll.mean().backward()
    back = paddle.allclose(inverse(y), x, atol=1e-5)
    return y, nll, back, net[2].bias.grad


def vector_quantization(paddle):
    """The nearest codebook entry, straight-through, with commitment."""
    F = paddle.nn.functional
    codes = paddle.create_parameter([4, 3], "float32")
    codes.set_value(wave(4, 3))
    x = paddle.to_tensor(wave(5, 3, phase=0.4), stop_gradient=False)
    distance = (x.unsqueeze(1) - codes.unsqueeze(0)).square().sum(axis=-1)
    nearest = paddle.argmin(distance, axis=1)
    picked = F.embedding(nearest, codes)
    commitment = F.mse_loss(x, picked.detach())
    quantized = x + (picked - x).detach()
    loss = (quantized**2).sum() + F.mse_loss(picked, x.detach()) + 0.25 * commitment
    loss.backward()
    usage = F.one_hot(nearest, 4).mean(axis=0)
    perplexity = paddle.exp(-(usage * paddle.log(usage + 1e-10)).sum())
    return nearest, loss, x.grad, codes.grad, perplexity
