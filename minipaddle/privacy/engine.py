"""Private training with Opacus' names: DP-SGD around any optimizer, DP-Adam around Adam.

- Batches are Poisson samples: each sample is in with probability q. They are padded to one size,
  with a mask, so that one program runs them all. A longer one comes in pieces of that size, none is
  cut: their clipped sums add up, and only the last piece changes the weights.
- Gradients are clipped for each sample (`per_sample.py`): while a step is traced, by the optimizer,
  in the program that the step becomes; in eager mode the network's call is captured, and its
  backward gives clipped sums.
- Noise of `noise_multiplier` · `max_grad_norm` is drawn in the program and added once, by rank 0,
  then all is divided by the *expected* batch size.
- The noise comes from a `Generator` of its own, which starts at `seed`, by default a secret one of
  the system's. It counts and mixes, and is no cipher; its numbers are floats, for which attacks are
  known (Mironov, 2012). Give a `seed` only to repeat an experiment.
- Each Poisson sample counts as a step for the accountant before it is handed out.

Sources: Abadi et al., "Deep Learning with Differential Privacy", 2016; the API of Opacus 1.6.
"""

from __future__ import annotations

import math
import secrets

from ..core.prelude import (
    NUMPY,
    Recording,
    Tensor,
    creation,
    current,
    dt,
    not_supported,
    note_refusal,
    reshape,
    runtime_error,
    teach,
    value_error,
    where,
)  # fmt: skip
from ..distributed.communication import all_reduce
from ..distributed.parallel import ReduceOp, get_rank, get_world_size
from ..distributed.ranks.known_groups import group_of
from ..distributed.tensors.data_parallel import DataParallel, broadcast_model
from ..engine.jit.capture import Captured
from ..io.collate import as_tensors
from ..nn import Layer
from ..ops.random import random_normal
from ..tensor.creation import zeros_like
from ..tensor.generator import Generator
from .accountant import RDPAccountant, get_noise_multiplier, make_accountant
from .per_sample import clip_gradients
from .sample_axes import SampleAxis


class BudgetError(RuntimeError):
    """The next step would use more privacy than the budget has."""


class SampleBatch:
    """The piece of a Poisson sample that is trained on: which rows are samples, which padding."""

    def __init__(self, size: int, bound: float, scale: float):
        self.size, self.bound, self.scale = size, bound, scale
        self.here = Tensor(NUMPY.zeros(size, "float32"))
        self.skip = Tensor(NUMPY.array(False))  # whether further pieces follow
        self.calls = 1  # of the network in eager mode, for this piece
        self.passed = False  # whether a backward in eager mode has
        self.root, self.marks = None, {}  # the program that is traced, and where its samples are
        self.used = None  # the traced program, after a step

    def start(self, count: int, skip: bool) -> None:
        """Begin a piece of `count` samples."""
        self.here.set_value((NUMPY.arange(self.size) < count).astype("float32"))
        self.skip.set_value(NUMPY.array(skip))
        self.calls, self.passed = 0, False

    def mark(self, *tensors) -> None:
        """Note values of the traced program whose axis 0 counts the samples."""
        if self.used is current.top.root or self.passed:
            raise second_use_error()
        if self.root is not current.top.root:
            self.root, self.marks, self.used = current.top.root, {}, None
        for x in tensors:
            self.marks[current.top.builder.value(current.top.lift(x))] = SampleAxis(0)

    def pass_once(self, g: Tensor) -> None:
        """Note a backward in eager mode; a second one would count the samples twice."""
        if self.passed:
            raise second_use_error()
        self.passed = True

    def clip(self, gradients, marks) -> list:
        """The clipped sums in the place of these gradients, in the traced program."""
        return clip_gradients(gradients, marks, self.here, self.bound, self.scale)

    def check(self, *tensors) -> None:
        """Raise ValueError unless axis 0 of these counts the samples of the piece."""
        wrong = [x for x in tensors if x.spec.shape[:1] != (self.size,)]
        if wrong or not tensors:
            raise value_error(
                f"private training of {wrong[0].spec if wrong else 'no tensor'}",
                expected=f"{self.size} samples on axis 0, as the private data loader gives them",
            )


def second_use_error() -> Exception:
    """The error for samples that would count twice."""
    return runtime_error(
        "a private network was called a second time for one batch, or before its loader gave one",
        expected="one call, one backward and one step for each batch of the private data loader",
        hint="eval() or no_grad() for other uses of the network",
    )


class SampledCall(Captured):
    """A call of a network, captured: the gradients of its weights are clipped sums."""

    def __init__(self, batch: SampleBatch, function, inputs):
        self.batch = batch
        super().__init__(function, [x.spec for x in inputs], [x.stop_gradient for x in inputs])

    def walk_back(self, tracer, inputs, starts, results, of):
        self.batch.check(*(results[k] for k in of))
        gradients = super().walk_back(tracer, inputs, starts, results, of)
        marks = dict.fromkeys(tracer.root.program.inputs, SampleAxis(0))
        count = len(self.walk.inputs)
        return [*gradients[:count], *self.batch.clip(gradients[count:], marks)]


class GradSampleModule(Layer):
    """A network whose training is private: `_module`, and that alone in `eval()` or without a tape.

    It takes tensors with the samples on axis 0 and gives such a tensor, in captured steps several.
    Its weights may be used through it alone: another use in the loss is not clipped in eager mode.
    """

    def __init__(self, module: Layer, batch: SampleBatch):
        super().__init__()
        self._module, self.batch, self.training = module, batch, module.training

    def forward(self, *inputs):
        batch, recording = self.batch, current.top.recording and self.training
        if not recording:
            return self._module(*inputs)
        batch.check(*inputs)
        if current.top.tracing:
            batch.mark(*inputs)
            results = self._module(*inputs)
            for y in results if type(results) in (tuple, list) else [results]:
                batch.check(y)
                if not y.stop_gradient:
                    y.register_hook(batch.mark)
            return results
        if batch.calls:
            raise second_use_error()
        batch.calls = 1

        def call(*tensors):
            y = self._module(*tensors)
            if not isinstance(y, Tensor):
                what = "a private network with several results, in eager mode"
                raise note_refusal(not_supported(what, hint="capture the step by to_static"))
            return [y]

        (y,), _ = SampledCall(batch, call, inputs)(list(inputs))
        if not y.stop_gradient:
            y.register_hook(batch.pass_once)
        return y


class DPOptimizer:
    """An optimizer whose steps take noisy sums of clipped gradients; else it is the wrapped one.

    `sums` has the clipped sums of earlier pieces of the Poisson sample. A step leaves no gradient,
    and its batch cannot be used again.
    """

    def __init__(self, optimizer, batch: SampleBatch, noise: float, expected: float, seed: int):
        self.original_optimizer, self.batch, self.expected_batch_size = optimizer, batch, expected
        self.generator = Generator(seed)
        share = noise * batch.bound if get_rank() == 0 else 0.0
        self.noise = Tensor(NUMPY.array(share, "float32"))
        optimizer.unless = batch.skip
        self.sums = {p: zeros_like(p.detach()) for p in optimizer._parameter_list}

    def __getattr__(self, name: str):
        if name.startswith("__"):  # what copying asks for, before there is an optimizer
            raise AttributeError(name)
        return getattr(self.original_optimizer, name)

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Do nothing: a step clears its gradients, and keeps the sums of earlier pieces."""

    zero_grad = clear_gradients = clear_grad

    def step(self) -> None:
        """Clip if this is traced, add noise, divide by the expected size, change the weights.

        Raises RuntimeError if no private call of the network came before.
        """
        batch, tracing = self.batch, current.top.tracing
        if not (batch.root is current.top.root if tracing else batch.passed):
            raise runtime_error(
                "a private step without a private call of the network before it",
                expected="network, backward and step in one program, or all in eager mode",
            )
        with Recording(False):
            trained = [p for p in self.sums if not p.stop_gradient and p.grad is not None]
            gradients = [p.grad for p in trained]
            if tracing:
                gradients = batch.clip(gradients, batch.marks)
            totals = {p: self.sums[p] + g for p, g in zip(trained, gradients)}
            for p, total in totals.items():
                p.grad = self.release(total)
            self.original_optimizer.step()
            for p, total in totals.items():
                self.sums[p].set_value(where(batch.skip, total, 0.0))
                p.clear_gradient()
            batch.here.set_value(batch.here * 0.0)
        batch.root, batch.used, batch.passed = None, batch.root, False

    def forget(self) -> None:
        """Drop the sums and gradients that a loop left early may have kept."""
        for p, total in self.sums.items():
            total.set_value(zeros_like(total))
            p.clear_gradient()

    def release(self, gradient: Tensor) -> Tensor:
        """The sum of all ranks with noise, over the expected batch size."""
        shape, dtype = gradient.spec
        i = creation.arange(size=math.prod(shape), dtype=dt.int64.numpy, start=0, step=1)
        normal = random_normal(i, self.generator.draw(), mean=0.0, std=1.0, dtype=dt.float32.numpy)
        noisy = gradient + (reshape(normal, shape=shape) * self.noise).astype(dtype)
        if get_world_size() > 1:
            all_reduce(noisy)
        return noisy / self.expected_batch_size


class DPDataLoader:
    """Poisson samples of a data set, as batches of one size whose last rows may be padding.

    Of several ranks each draws from samples of its own. `steps` samples are an epoch.
    """

    def __init__(self, loader, batch: SampleBatch, rate: float, steps: int, begin, seed: int):
        self.dataset, self.collate_fn = loader.dataset, loader.collate_fn
        self.sample_rate, self.steps, self.batch, self.begin = rate, steps, batch, begin
        self.own = range(get_rank(), len(loader.dataset), get_world_size())
        self.random = NUMPY.random.default_rng([seed, get_rank()])

    def __len__(self) -> int:
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            self.begin()
            chosen = NUMPY.flatnonzero(self.random.random(len(self.own)) < self.sample_rate)
            pieces = Tensor(NUMPY.array(max(1, -(-len(chosen) // self.batch.size))))
            if get_world_size() > 1:
                all_reduce(pieces, op=ReduceOp.MAX)
            for k in reversed(range(int(pieces))):
                part, chosen = NUMPY.split(chosen, [self.batch.size])
                self.batch.start(len(part), skip=k > 0)
                rows = [self.dataset[self.own[i]] for i in part.tolist()]
                padding = [rows[0] if rows else self.dataset[self.own[0]]]
                yield as_tensors(self.collate_fn(rows + padding * (self.batch.size - len(rows))))


class PrivacyEngine:
    """Makes training private, and says how private it was.

    accountant: "prv" or the faster, looser "rdp"; seed: of noise and samples, by default a secret

    >>> net = paddle.nn.Linear(2, 1)
    >>> data = paddle.io.TensorDataset([paddle.randn([64, 2]), paddle.randn([64, 1])])
    >>> engine = paddle.privacy.PrivacyEngine(accountant="rdp", seed=1)
    >>> net, opt, loader = engine.make_private(
    ...     module=net,
    ...     optimizer=paddle.optimizer.SGD(0.1, parameters=net.parameters()),
    ...     data_loader=paddle.io.DataLoader(data, batch_size=16),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=0.5,
    ... )
    >>> for x, y in loader:
    ...     paddle.nn.functional.mse_loss(net(x), y).backward()
    ...     opt.step()
    >>> round(engine.get_epsilon(delta=1e-3), 1)
    3.2
    """

    def __init__(self, *, accountant: str = "prv", seed: int | None = None):
        self.accountant = make_accountant(accountant)
        self.seed = secrets.randbits(62) if seed is None else seed
        self.budget: tuple | None = None  # (epsilon, delta)

    def get_epsilon(self, delta: float) -> float:
        """The epsilon that the steps so far have used, for this delta."""
        return self.accountant.get_epsilon(delta)

    def make_private(
        self, *, module, optimizer, data_loader, noise_multiplier: float, max_grad_norm: float,
        loss_reduction: str = "mean", max_physical_batch_size: int | None = None, budget=None,
    ) -> tuple:  # fmt: skip
        """(network, optimizer, data loader) for a training loop as it was.

        noise_multiplier: the noise's deviation over `max_grad_norm`, the bound of a sample's norm
        loss_reduction: "mean" or "sum" over the samples, as the loss has it
        max_physical_batch_size: the size of batches, by default four deviations above the mean
        budget: (epsilon, delta), beyond which the loader raises BudgetError

        The loader's `batch_size` is the expected size of a sample, on all ranks together.
        """
        if isinstance(module, DataParallel):
            raise not_supported("private training of DataParallel", hint="give the network itself")
        own = set(optimizer._parameter_list)
        if strange := own - {*module.parameters()}:
            raise value_error(
                f"the optimizer has {len(strange)} parameters that the network has not",
                expected="an optimizer of module.parameters()",
            )
        if loss_reduction not in ("mean", "sum") or not max_grad_norm > 0 or noise_multiplier < 0:
            raise value_error(
                f"{loss_reduction=}, {max_grad_norm=}, {noise_multiplier=}",
                expected="'mean' or 'sum', a bound above 0, noise of 0 or more",
            )
        expected, total = data_loader.batch_size, len(data_loader.dataset)
        rate, ranks = expected / total, get_world_size()
        mean = expected / ranks
        size = max_physical_batch_size or math.ceil(mean + 4 * math.sqrt(mean * (1 - rate)))
        size = max(size, 2)
        batch = SampleBatch(size, max_grad_norm, size if loss_reduction == "mean" else 1.0)
        self.budget, steps = budget, math.ceil(total / expected)
        private = DPOptimizer(optimizer, batch, noise_multiplier, expected, self.seed)

        def begin() -> None:
            self.count_step(noise_multiplier, rate)
            private.forget()

        if ranks > 1:
            broadcast_model(module, group_of(None))
        loader = DPDataLoader(data_loader, batch, rate, steps, begin, self.seed)
        return GradSampleModule(module, batch), private, loader

    def make_private_with_epsilon(
        self, *, module, optimizer, data_loader, target_epsilon: float, target_delta: float,
        epochs: int, max_grad_norm: float, **more,
    ) -> tuple:  # fmt: skip
        """`make_private` with the least noise for `epochs`, after which the budget is used up."""
        total, expected = len(data_loader.dataset), data_loader.batch_size
        noise = get_noise_multiplier(
            target_epsilon=target_epsilon, target_delta=target_delta,
            sample_rate=expected / total, steps=epochs * math.ceil(total / expected),
            accountant="rdp" if type(self.accountant) is RDPAccountant else "prv",
        )  # fmt: skip
        return self.make_private(
            module=module, optimizer=optimizer, data_loader=data_loader, noise_multiplier=noise,
            max_grad_norm=max_grad_norm, budget=(target_epsilon, target_delta), **more,
        )  # fmt: skip

    def count_step(self, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step; raises BudgetError if the budget does not reach for it."""
        before = [[*each] for each in self.accountant.history]
        self.accountant.step(noise_multiplier=noise_multiplier, sample_rate=sample_rate)
        if self.budget is None:
            return
        epsilon, delta = self.budget
        quick = RDPAccountant()
        quick.history = self.accountant.history
        if quick.get_epsilon(delta) > epsilon and (now := self.get_epsilon(delta)) > epsilon:
            self.accountant.history = before
            raise BudgetError(
                teach(
                    f"the next step would use epsilon {now:.3g} at delta {delta:g}",
                    expected=f"at most {epsilon:g}, the budget",
                    hint="stop here, or begin again with more noise",
                )
            )
