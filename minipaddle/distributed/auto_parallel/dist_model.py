"""`dist.to_static`: a layer, its loss and its optimizer as programs that each rank runs."""

from functools import partial
from types import SimpleNamespace

from ...amp.configs import as_mixed_precision
from ...core.prelude import Recording, Tensor, not_supported, type_error, value_error
from ...jit import to_static as program_of_function
from ...nn import Layer
from ...optimizer import Optimizer
from ..ranks.require_same import parameters_of, require_same
from .in_stages import StagedModel
from .strategy import Strategy


class DistModel:
    """A layer as programs for training, evaluation and prediction: see `dist.to_static`.

    A call in mode "train" takes inputs, then the label, makes a step of the optimizer and returns
    the loss; in mode "eval" it returns the loss; in mode "predict" it takes inputs and returns
    the layer's result. At first the mode is "train" if there are a loss and an optimizer, "eval" if
    there is a loss, else "predict". With `input_spec=[inputs, labels]` there may be several labels,
    or none.

    >>> import minipaddle.distributed as dist
    >>> net = paddle.nn.Linear(2, 1)
    >>> dist.DistModel(net, None).mode
    'predict'
    """

    def __init__(
        self, layer, loader, loss=None, optimizer=None, strategy=None, metrics=None, input_spec=None
    ):
        for argument, expected, what in (
            (layer, Layer, "layer"),
            (optimizer, Optimizer | None, "optimizer"),
            (strategy, Strategy | None, "strategy"),
        ):
            if not isinstance(argument, expected):
                raise type_error(f"{what}={argument!r:.80} of a DistModel", "see dist.to_static")
        if loss is not None and not callable(loss):
            raise type_error(f"loss={loss!r:.80} of a DistModel", "a layer or a function")
        if optimizer is not None and loss is None:
            raise value_error("a DistModel with an optimizer and without a loss", expected="both")
        if metrics:
            raise not_supported("metrics of a DistModel", hint="paddle.metric, on its outputs")
        self.network, self.loader, self.loss, self.optimizer = layer, loader, loss, optimizer
        self.strategy = strategy or Strategy()
        self.strategy.require_supported()
        self.input_spec, self.calls = input_spec, 0
        self.merged, self.mean = getattr(optimizer, "gradient_accumulation_steps", 1), True
        merge = self.strategy.gradient_merge
        if merge.enable:
            self.merged, self.mean = merge.k_steps, merge.avg
        self.require_same()
        self.amp, self.scaler = as_mixed_precision(layer, optimizer, self.strategy.amp_configs())
        self.functions = {
            name: program_of_function(function)
            for name, function in (
                ("train", self.train_step),
                ("merge", self.merge_step),
                ("eval", self.compute_loss),
                ("predict", self.compute_outputs),
            )
        }
        self.in_stages = None
        if split := vars(layer).get("pipeline_split"):
            self.in_stages = StagedModel(self, split)
            doing = self.in_stages.train, self.in_stages.evaluate, self.in_stages.predict
            self.functions |= dict(zip(("train", "eval", "predict"), doing))
        elif self.strategy.pipeline.enable:
            raise value_error(
                "Strategy: pipeline.enable = True for a model in one part",
                hint='dist.parallelize(model, optimizer, mesh, {"pp_config": {"split_spec": …}})',
            )
        self.mode = "predict" if loss is None else "eval" if optimizer is None else "train"
        self.set_mode(self.mode)

    def require_same(self) -> None:
        """ValueError on all ranks of the parameters' mesh unless they make the same model."""
        meshes = [p.process_mesh for p in self.network.parameters() if p.is_dist()]
        if meshes:
            how = type(self.loss), type(self.optimizer), self.strategy.to_dict(), self.merged
            facts = {"loss, optimizer, strategy": [*how]} | parameters_of(self.network)
            require_same("DistModel", meshes[0], facts)

    # ---- modes -------------------------------------------------------------------------------

    def train(self) -> None:
        """Let calls make steps of the optimizer."""
        self.set_mode("train")

    def eval(self) -> None:
        """Let calls compute the loss."""
        self.set_mode("eval")

    def predict(self) -> None:
        """Let calls compute the result of the layer."""
        self.set_mode("predict")

    def set_mode(self, mode: str) -> None:
        """Choose a mode, and the layer's. ValueError without the loss or optimizer it needs."""
        for name, part in (("loss", self.loss), ("optimizer", self.optimizer)):
            if part is None and name in NEEDS[mode]:
                raise value_error(f"mode {mode!r} of a DistModel without {name}")
        self.mode = mode
        self.network.train() if mode == "train" else self.network.eval()

    # ---- calls -------------------------------------------------------------------------------

    def __call__(self, *args):
        name = self.mode
        if name == "train":
            self.calls += 1
            name = "merge" if self.calls % self.merged else "train"
        if self.in_stages is not None:
            return self.functions[self.mode](*args)
        with Recording(self.mode == "train"):
            return self.functions[name](*args)

    def train_step(self, *args) -> Tensor:
        """The loss, after a step with the gradients of all calls since the last step."""
        loss = self.merge_step(*args)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad()
        return loss

    def merge_step(self, *args) -> Tensor:
        """The loss; its gradient is added to the gradients of the calls before."""
        loss = self.compute_loss(*args)
        share = loss / self.merged if self.mean and self.merged > 1 else loss
        self.scaler.scale(share).backward()
        return loss

    def compute_loss(self, *args) -> Tensor:
        """The loss of inputs and labels."""
        spec = self.input_spec
        count = len(args) - 1 if spec is None else len(spec[0])
        outputs = self.compute_outputs(*args[:count])
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        with self.amp():
            return self.loss(*outputs, *args[count:])

    def compute_outputs(self, *inputs):
        """The result of the layer for inputs."""
        with self.amp():
            return self.network(*inputs)

    # ---- programs ----------------------------------------------------------------------------

    def serial_main_program(self, mode=None):
        """The program of a mode for full tensors. RuntimeError before the first call."""
        return self.functions[mode or self.mode].main_program

    def dist_main_program(self, mode=None):
        """The program of a mode that this rank runs on its shards. RuntimeError before the first
        call.

        >>> import minipaddle.distributed as dist
        >>> def work():
        ...     mesh, net = dist.ProcessMesh([0, 1]), paddle.nn.Linear(2, 4)
        ...     dist.shard_tensor(net.weight, mesh, [dist.Shard(1)])
        ...     model = dist.to_static(net)
        ...     y = model(paddle.ones([3, 2]))
        ...     programs = model.serial_main_program(), model.dist_main_program()
        ...     return [str(p.states[0].record.spec) for p in programs]
        >>> dist.spawn(work, nprocs=2).results[0]
        ['float32[2, 4]', 'float32[2, 2]']
        """
        captured = self.functions[mode or self.mode].concrete_program
        parts = [part for part, *_ in captured.executables.parts.values()]
        return parts[-1] if parts else captured.program

    def serial_startup_program(self, mode=None):
        """Raise NotImplementedError: parameters have their values from the start."""
        raise not_supported("a startup program", "parameters have their values from the start")

    dist_startup_program = serial_startup_program

    # ---- states ------------------------------------------------------------------------------

    def state_dict(self, mode="all", split_fusion=True) -> dict:
        """The parameters and buffers of the layer ("param"), the states of the optimizer ("opt"),
        or "all". `split_fusion` is Paddle's, and changes nothing.
        """
        if mode not in ("all", "param", "opt"):
            raise value_error(f"state_dict({mode!r})", expected="'all', 'param' or 'opt'")
        if self.in_stages is not None:
            self.in_stages.share_weights()
        state = {} if mode == "opt" else dict(self.network.state_dict())
        if mode != "param" and self.optimizer is not None:
            self.create_states()
            state |= self.optimizer.state_dict()
        return state

    def create_states(self) -> None:
        """Let the optimizer have the states that it has after a step, so that a checkpoint that is
        read before the first step fills them.
        """
        trains = self.in_stages.trains if self.in_stages is not None else lambda p: True
        for group in self.optimizer._param_groups:
            for p in group.params:
                if not p.stop_gradient and p not in self.optimizer._states and trains(p):
                    self.optimizer._create_state(group, p)

    def split_state(self) -> dict:
        """Its layer and its optimizer as two objects that have state dicts, so that a loop with a
        layer and an optimizer can read what `elastic.steps` saves.
        """
        modes = {"model": "param", "optimizer": "opt"}
        load = self.set_state_dict
        return {
            name: SimpleNamespace(state_dict=partial(self.state_dict, mode), set_state_dict=load)
            for name, mode in modes.items()
        }

    def set_state_dict(self, state_dict) -> None:
        """Load what `state_dict` returned."""
        names = self.network.state_dict().keys() & state_dict.keys()
        if names:
            self.network.set_state_dict({k: state_dict[k] for k in names})
        others = {k: x for k, x in state_dict.items() if k not in names}
        if others and self.optimizer is not None:
            self.optimizer.set_state_dict(others)


NEEDS = {"train": ("loss", "optimizer"), "eval": ("loss",), "predict": ()}
"""The needs of each mode."""


def to_static(layer, loader=None, loss=None, optimizer=None, strategy=None, input_spec=None):
    """A layer, whose parameters may be sharded, as programs that each rank runs.

    loader: the source of the batches of later calls; a loader of `shard_dataloader` makes sharded
        tensors (nothing is read from it here)
    loss: called with the outputs of the layer and the labels
    optimizer: of the layer's parameters; `shard_optimizer` may have sharded its states
    strategy: a `dist.Strategy`
    input_spec: [inputs, labels], lists that say how many arguments of a call are inputs

    Raises TypeError for arguments of other kinds, NotImplementedError for settings of the strategy
    that do nothing here.

    >>> import minipaddle.distributed as dist
    >>> def work():
    ...     paddle.seed(1)
    ...     mesh, net = dist.ProcessMesh([0, 1], dim_names=["dp"]), paddle.nn.Linear(2, 1)
    ...     dist.shard_layer(net, mesh)
    ...     sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    ...     model = dist.to_static(net, None, paddle.nn.MSELoss(), sgd)
    ...     x = dist.shard_tensor(paddle.ones([4, 2]), mesh, [dist.Shard(0)])
    ...     losses = [float(model(x, paddle.ones([4, 1]))) for _ in range(9)]
    ...     return losses[-1] < losses[0] / 9
    >>> dist.spawn(work, nprocs=2).results
    [True, True]
    """
    return DistModel(layer, loader, loss, optimizer, strategy, input_spec=input_spec)
