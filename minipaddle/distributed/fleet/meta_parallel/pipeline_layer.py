"""`PipelineLayer`: a list of layers; each stage of a pipeline builds its own part."""

from itertools import count

from ....engine.core.errors import type_error, value_error
from ....engine.sharding.placements import ProcessMesh
from ....nn import Layer
from ....nn import names as unique_name
from ....tensor.generator import GENERATOR
from ...pipeline.schedules import Schedule, build_schedule
from ...pipeline.segments import cut_layers
from ...pipeline.training import DRAWS, local
from ..recompute import Segment, recompute
from ..strategy import strategy_in_use
from ..topology import get_hybrid_communicate_group


class LayerDesc:
    """A layer to build: its class and arguments. Only the stage that has it builds it.

    >>> from minipaddle.distributed import fleet
    >>> fleet.meta_parallel.LayerDesc(paddle.nn.Linear, 4, 2).build_layer()
    Linear(in_features=4, out_features=2, dtype=float32)
    """

    def __init__(self, layer_func, *inputs, **kwargs):
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise type_error(f"LayerDesc of {layer_func!r:.60}", "a class of layers")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self) -> Layer:
        """The layer."""
        return self.layer_func(*self.inputs, **self.kwargs)

    def __repr__(self) -> str:
        return f"LayerDesc({self.layer_func.__name__})"


class SharedLayerDesc(LayerDesc):
    """A layer that occurs several times under a `key`, in stages whose weights stay the same.

    forward_func: called with the layer and its input, instead of the layer's `forward`
    shared_weight_attr: the name of the weight, or of several, that all have in common

    >>> from minipaddle.distributed.fleet.meta_parallel import SharedLayerDesc
    >>> head = lambda layer, x: paddle.matmul(x, layer.weight, transpose_y=True)
    >>> SharedLayerDesc("words", paddle.nn.Embedding, head, "weight", 10, 4).layer_name
    'words'
    """

    def __init__(
        self, key, layer_func, forward_func=None, shared_weight_attr="weight", *inputs, **kwargs
    ):
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func = key, forward_func
        names = shared_weight_attr
        self.shared_weight_attr = [names] if isinstance(names, str) else [*names]


class LayerStep:
    """One layer of the list, by its number: before it runs, the generator jumps to its place."""

    def __init__(self, number: int, owner, function):
        self.number, self.owner, self.function = number, owner, function
        self.start = None  # (position, number) of the first layer of a part that runs now

    def __call__(self, *args):
        if self.start is not None:
            position, first = self.start
            GENERATOR.jump(position, (self.number - first) * DRAWS)
        return self.function(*args)

    def buffers(self) -> list:
        return self.owner.buffers() if isinstance(self.owner, Layer) else []

    def parameters(self) -> list:
        return self.owner.parameters() if isinstance(self.owner, Layer) else []


class PipelineLayer(Layer):
    """A model as a list of layers, cut into the stages along pipe of `fleet.init`.

    layers: `LayerDesc`s, `SharedLayerDesc`s, layers, and functions without weights; each takes the
        result of the one before it, a tensor or a tuple of tensors
    num_stages: the stages, which have to be as many as `pp_degree`; `topology` is Paddle's other
        way to say so
    loss_fn: called with the result of the last layer and the labels
    seg_method: the way to cut: "uniform", "layer:Name" (as many layers of a class in each part),
        or a cost for each layer, so that the slowest part is as fast as possible
    recompute_interval: the number of layers that keep their input alone, and compute again; 0: none
    num_virtual_pipeline_stages: the parts of each stage, for the schedule VPP

    The names of layers are their numbers in the list, in every stage. Raises ValueError
    for stages without a layer. `use_cudagraph` and `recompute_ctx` change nothing here.

    >>> from minipaddle.distributed import fleet
    >>> from minipaddle.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
    >>> def work():
    ...     strategy = fleet.DistributedStrategy()
    ...     strategy.hybrid_configs = {"pp_degree": 2}
    ...     fleet.init(is_collective=True, strategy=strategy)
    ...     first, last = (LayerDesc(paddle.nn.Linear, 4, n) for n in (4, 1))
    ...     model = PipelineLayer([first, paddle.tanh, last], seg_method="layer:Linear")
    ...     return [name for name, _ in model.named_parameters()]
    >>> paddle.distributed.spawn(work, nprocs=2).results
    [['0.weight', '0.bias'], ['2.weight', '2.bias']]
    """

    def __init__(
        self, layers, num_stages=None, topology=None, loss_fn=None, seg_method="uniform",
        recompute_interval=0, recompute_ctx=None, num_virtual_pipeline_stages=None,
        use_cudagraph=False, use_dualpipev=False,
    ):  # fmt: skip
        super().__init__()
        hcg = get_hybrid_communicate_group()
        stages = hcg.get_pipe_parallel_world_size()
        asked = topology.get_dim("pipe") if topology is not None else num_stages
        if asked not in (None, stages):
            raise value_error(f"a PipelineLayer of {asked} stages", f"pp_degree, {stages}")
        if loss_fn is not None and not callable(loss_fn):
            raise type_error(f"loss_fn={loss_fn!r:.60}", "a layer or a function")
        self.descs, self.loss_fn, self.hcg = [*layers], loss_fn, hcg
        self.interval = recompute_interval
        self.schedule = schedule_in_use(stages, num_virtual_pipeline_stages, use_dualpipev)
        names = [name_of(each) for each in self.descs]
        self.bounds = cut_layers(names, self.schedule.parts, seg_method)
        self.shared: dict[str, Layer] = {}
        begin = GENERATOR.position()
        self.steps = [self.build_part(part, begin) for part in self.own_parts()]
        GENERATOR.jump(begin, len(self.descs) * DRAWS)
        self.tied = self.tie_weights()

    def own_parts(self) -> list[int]:
        """The numbers of this stage's parts, by chunk."""
        stage = self.hcg.get_stage_id()
        return [self.schedule.find_part(stage, k) for k in range(self.schedule.chunks)]

    def build_part(self, part: int, begin) -> list[LayerStep]:
        """Build the layers of a part, with values and names as if all layers were built here."""
        steps = []
        for number in range(self.bounds[part], self.bounds[part + 1]):
            desc = self.descs[number]
            keys = map(key_of, self.descs, count())
            first = next(k for k, key in enumerate(keys) if key == key_of(desc, number))
            GENERATOR.jump(begin, first * DRAWS)
            with unique_name.guard(f"{self.full_name()}_{first}_"):
                steps.append(self.build_step(number, str(first), desc))
        return steps

    def build_step(self, number: int, name: str, desc) -> LayerStep:
        """Build a layer of the list, with the name of its first occurrence."""
        if isinstance(desc, SharedLayerDesc):
            if desc.layer_name not in self.shared:
                self.shared[desc.layer_name] = self.add_sublayer(name, desc.build_layer())
            layer = self.shared[desc.layer_name]
            if desc.forward_func is None:
                return LayerStep(number, layer, layer)
            return LayerStep(number, layer, lambda *xs: desc.forward_func(layer, *xs))
        if isinstance(desc, (LayerDesc, Layer)):
            layer = desc.build_layer() if isinstance(desc, LayerDesc) else desc
            return LayerStep(number, layer, self.add_sublayer(name, layer))
        return LayerStep(number, None, desc)

    # ---- weights that several stages have ----------------------------------------------------

    def tie_weights(self) -> list[tuple]:
        """Give each weight that several stages have the values of the first; return (weight, group)
        for each.
        """
        stages: dict[str, dict] = {}
        for part in range(self.schedule.parts):
            for desc in self.descs[self.bounds[part] : self.bounds[part + 1]]:
                if isinstance(desc, SharedLayerDesc):
                    names_by_stage = stages.setdefault(desc.layer_name, {})
                    names_by_stage[self.schedule.locate(part)[0]] = desc.shared_weight_attr
        tied = []
        for key, names_by_stage in stages.items():
            if len(names_by_stage) == 1 or self.hcg.get_stage_id() not in names_by_stage:
                continue
            ranks = [self.hcg.get_rank_from_stage(stage) for stage in names_by_stage]
            group = ProcessMesh(ranks, [f"tied {key}"]).get_group()
            for name in names_by_stage[self.hcg.get_stage_id()]:
                weight = getattr(self.shared[key], name)
                weight.is_firstly_shared = group.rank == 0
                group.broadcast(local(weight.array), 0)
                tied.append((weight, group))
        return tied

    # ---- running -----------------------------------------------------------------------------

    def function_of(self, chunk: int, labels: int | None):
        """A part as a function of tensors that returns a tuple of them. The last part with
        `labels`, the number of labels, returns the loss.
        """
        steps, last = self.steps[chunk], self.own_parts()[chunk] == self.schedule.parts - 1
        with_loss = last and labels is not None

        def function(*args):
            count = len(args) - labels if with_loss else len(args)
            y = self.run_steps(steps, args[:count])
            if with_loss:
                y = self.loss_fn(y, *args[count:])
            return y if isinstance(y, tuple) else (y,)

        return function

    def run_steps(self, steps: list[LayerStep], args: tuple):
        """Run layers, one after the other, on tensors."""
        start = (GENERATOR.position(), steps[0].number) if self.training else None
        for step in steps:
            step.start = start
        every = self.interval or len(steps)
        for k in range(0, len(steps), every):
            segment = Segment(steps[k : k + every])
            y = recompute(segment, *args) if self.interval else segment(*args)
            args = y if isinstance(y, tuple) else (y,)
        return y

    def forward(self, *inputs):
        """The result of all layers for tensors; ValueError in one of several stages."""
        if self.schedule.stages > 1:
            raise value_error(
                f"PipelineLayer.forward in one of {self.schedule.stages} stages",
                hint="fleet.distributed_model(model).train_batch(data, optimizer), or eval_batch",
            )
        parts = sorted(zip(self.own_parts(), self.steps))
        return self.run_steps([step for _, steps in parts for step in steps], inputs)


def schedule_in_use(stages: int, chunks: int | None, folded: bool) -> Schedule:
    """The schedule of the strategy of `fleet.init`."""
    how = strategy_in_use().pipeline_configs
    name = how["schedule_mode"]
    if folded and name != "ZBV":
        raise value_error(f"use_dualpipev with the schedule {name}", 'schedule_mode="ZBV"')
    if chunks is None:
        chunks = 2 if name == "ZBV" else 1
    if chunks > 1 and name == "1F1B":  # Paddle's way: the chunks decide
        name = "VPP"
    return build_schedule(name, stages, how["accumulate_steps"], chunks)


def key_of(desc, number: int):
    """The identity of a layer: the key that shares it, else its number."""
    return desc.layer_name if isinstance(desc, SharedLayerDesc) else number


def name_of(desc) -> str:
    """The name of the class of a layer."""
    if isinstance(desc, LayerDesc):
        return desc.layer_func.__name__
    if not callable(desc):
        raise type_error(f"a row of layers with {desc!r:.60}", "LayerDesc, a layer, a function")
    return type(desc).__name__ if isinstance(desc, Layer) else getattr(desc, "__name__", "function")
