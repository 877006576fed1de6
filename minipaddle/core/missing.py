"""Names that are not here: why Paddle's are left out, and which name is nearest to another."""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from importlib.machinery import ModuleSpec

PART = "comes with a later part of MiniPaddle: "

LEFT_OUT = {
    PART + "mixed precision": "amp autocast get_autocast_* is_autocast_enabled static.amp.*",
    PART + "quantization": "quantization nn.quant static.quantization",
    PART + "inference": """
        inference onnx incubate.inference static.*serialize_* static.normalize_program
        static.load_from_file static.save_to_file static.*_program_state""",
    PART + "sharding": """
        distributed.[!P]*Parallel distributed.ParallelMode distributed.Sequence*
        distributed.PrepareContextParallel distributed.Prepare* distributed.*hard*
        distributed.Dist* distributed.LocalLayer distributed.Partial distributed.Placement
        distributed.ProcessMesh distributed.ReduceType distributed.Replicate distributed.Strategy
        distributed.dtensor_* distributed.?et_mesh distributed.local_map distributed.parallelize
        distributed.to_* distributed.*_state_dict distributed.fleet.*Communicat* is_dist
        num_shard placements process_mesh distributed.fleet.auto distributed.fleet.base
        distributed.fleet.distributed_scaler distributed.fleet.fleet
        distributed.fleet.get_hybrid_* distributed.fleet.layers
        distributed.fleet.meta_optimizers distributed.fleet.meta_parallel
        distributed.fleet.utils.[a-z]*_*""",
    PART + "pipelines": "distributed.SplitPoint distributed.split",
    PART + "parameter servers and elastic training": """
        distributed.*Entry distributed.*Dataset distributed.gloo_* distributed.rpc
        distributed.fleet.*Role* distributed.fleet.Multi* distributed.fleet.UtilBase
        distributed.fleet.Fleet distributed.fleet.utils.[A-Z]* static.ctr_metric_bundle
        distributed.restart_process_group distributed.shutdown_process_group""",
    PART + "models from elsewhere": "hub",
    "complex numbers are not supported by MiniPaddle": """
        complex complex64 complex128 cfloat cdouble as_complex as_real view_as_* polar fft signal
        stft istft""",
    "sparse tensors are not supported by MiniPaddle: a tensor has all of its elements": """
        sparse is_sparse* to_sparse* is_coalesced coalesce sparse_dim dense_dim cols crows rows
        indices values nnz to_dense is_dense is_selected_rows get_selected_rows
        static.nn.sparse_*""",
    "spectra of sound need complex numbers, which MiniPaddle does not support": "audio",
    "MiniPaddle downloads no data; paddle.vision.datasets.Digits comes with scikit-learn, and a "
    "paddle.io.Dataset of yours can read files": """
        text.*T1? text.[CIMU]* vision.datasets.[!D]*""",
    "MiniPaddle defines LeNet, ResNet and MobileNetV2; paddle.nn has the layers of the others": """
        vision.models.[ADGIVadgisv]* vision.models.S[hq]* vision.models.*obile*[13]*""",
    "MiniPaddle computes on the CPU and on NVIDIA's GPUs": """
        CustomPlace XPU* *.XPU* *.IPU* static.Ipu* static.*ipu* device.xpu static.xpu_*
        version.cuda_archs version.hip version.nccl version.tensorrt version.xpu*""",
    "a GPU has one queue of work here: paddle.device.synchronize() waits for it": """
        *.Stream *.StreamContext *.stream *.stream_guard *.*_stream *.Event
        *.get_stream_from_external *.is_current_stream_capturing device.device
        distributed.communication.stream distributed.create_nccl_config static.device_guard
        static.cuda_places""",
    "CuPy has the memory of the GPU and copies from ordinary memory": """
        *.ipc_collect *.*memory_summary *.vmm_compact *.max_memory_* *.reset_*
        *.mem_get_info MmapStorage""",
    "it is about how Paddle keeps a tensor in memory": """
        get_map_tensor grad_ grad_fn layout offset reconstruct_from_ resize_ set_ set_string_list
        set_tensor set_vocab create_tensor Tensor.create_parameter check_shape nextafter""",
    "the functions for GPUs are in paddle.device and paddle.device.cuda": "paddle.cuda",
    "MiniPaddle is Python and NumPy: there is no C++ to link with": "sysconfig utils.cpp_extension",
    "the pictures of paddle.viz (viz.profile) show where the time goes": "profiler",
    "paddle.viz.curves draws what a training writes down": "callbacks.[VW]*",
    "paddle.optimizer.lr.ReduceOnPlateau does it": "callbacks.ReduceLROnPlateau",
    "draws need gradients of the gamma function's inverse, or an algorithm of their own": """
        distribution.Beta distribution.Binomial distribution.Chi2 distribution.ContinuousBernoulli
        distribution.Dirichlet distribution.ExponentialFamily distribution.Gamma
        distribution.Geometric distribution.LKJCholesky distribution.Multi* distribution.Poisson
        distribution.StudentT distribution.*Transform* distribution.transform""",
    "it is one detector's way to boxes; nms, roi_align and yolo_box are there": """
        vision.ops.PSRoIPool vision.ops.psroi_pool vision.ops.box_coder vision.ops.matrix_nms
        vision.ops.distribute_fpn_proposals vision.ops.generate_proposals vision.ops.prior_box
        vision.ops.yolo_loss""",
    "it is about how Paddle itself is developed": """
        utils.deprecated utils.require_version block nn.layer.layers.in_declarative_mode""",
    "it belongs to Paddle's C++, where MiniPaddle has operators written in Python": """
        *.LayerHelper base.*.* framework.core.* framework.io pir""",
    "the interface of Paddle 1, which left Paddle with 2.5": "fluid",
    "MiniPaddle fuses operations by itself: write them one after the other": """
        incubate.nn.[!F]* incubate.nn.Fused[!L]* incubate.softmax_mask_fuse* incubate.cc
        incubate.identity_loss
        nn.functional.*flash* nn.functional.sparse_attention nn.attention linalg.fp8_*
        nn.functional.moe_*""",
    "what is experimental in Paddle is left out": "incubate.[!n]*",
    "graphs of nodes and edges are left out: paddle.scatter_reduce sums over edges": "geometric",
    "PyTorch's spelling of this; the function of that name in paddle takes Paddle's": """
        compat special disable_compat enable_compat nn.init""",
    "a dtype that MiniPaddle does not have": "uint16 uint32 uint64 float8_* pstring raw",
    "PyTorch's constructors of one dtype: write paddle.to_tensor(x, dtype)": """
        [BCDFHILS]*Tensor device.*Tensor cuda.*Tensor""",
    "there is one generator, which paddle.seed starts": "Generator random_",
    "a reader of Paddle 1; paddle.io.DataLoader makes batches": "batch",
    "a part of Paddle 1 that has one of Paddle 2: layers, or functions of paddle": """
        static.nn.bilinear_* static.nn.*transpose static.nn.conv3d static.nn.deform_conv2d
        static.nn.group_norm static.nn.instance_norm static.nn.nce static.nn.p*
        static.nn.row_conv static.nn.sequence_* static.nn.spectral_norm static.nn.static_pylayer
        static.Print static.py_func static.accuracy static.auc
        static.create_global_var static.scope_guard static.ExponentialMovingAverage
        static.WeightNormParamAttr distributed.passes""",
    "decoding is a loop over steps, which a model writes itself": """
        nn.BeamSearchDecoder nn.dynamic_decode text.ViterbiDecoder text.viterbi_decode
        top_p_sampling tensor.top_p_sampling""",
    "it serves one model or loss, and is more than a few lines": """
        nn.AdaptiveLogSoftmaxWithLoss nn.FractionalMaxPool?D nn.HSigmoidLoss nn.RNNTLoss
        nn.functional.adaptive_log_softmax_with_loss nn.functional.class_center_sample
        nn.functional.fractional_max_pool?d nn.functional.hsigmoid_loss
        nn.functional.margin_cross_entropy nn.functional.rnnt_loss *_lowrank""",
    "pictures are turned and cut by the other transforms": """
        vision.transforms.affine vision.transforms.erase vision.transforms.perspective
        vision.transforms.RandomAffine vision.transforms.RandomErasing
        vision.transforms.RandomPerspective""",
    "pictures are read by Pillow, or by a paddle.io.Dataset of yours": """
        vision.*image_backend vision.image_load vision.datasets.DatasetFolder
        vision.ops.read_file vision.ops.decode_jpeg""",
}  # fmt: skip
"""Why -> the names of Paddle that are left out for it; `paddle.` and `Tensor.` may be left away.

A name stands for all below it too; a star is any text. The first that fits counts.
"""


def reason(name: str) -> str | None:
    """Why Paddle's name, such as `paddle.fft.fft` or `Tensor.coalesce`, is left out; else None.

    >>> from minipaddle.core.missing import reason
    >>> reason("paddle.onnx.export")
    'comes with a later part of MiniPaddle: inference'
    """
    heads = heads_of(name)
    for why, names in LEFT_OUT.items():
        if any(fnmatchcase(head, known) for known in names.split() for head in heads):
            return why
    return None


def heads_of(name: str) -> list[str]:
    """`paddle.fft.fft`, `paddle.fft`, `fft.fft`, `fft` and so on: what a pattern may name."""
    inner = name.removeprefix("paddle.")
    paths = name, inner, inner.removeprefix("Tensor.")
    return [path[:k] for path in paths for k, letter in enumerate(f"{path}.") if letter == "."]


class Refusals:
    """Gives `import paddle.fft` and `from paddle import fft` the message of `paddle.fft`.

    Python asks the last entry of `sys.meta_path` when no other finds the module.
    """

    package = __name__.partition(".")[0]

    @classmethod
    def find_spec(cls, fullname: str, path=None, target=None) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        why = reason(f"paddle.{rest}") if package == cls.package and rest else None
        if why is not None:
            raise ImportError(f"paddle.{rest}: {why}", name=fullname)
        return None


class LazyMessage:
    """The text of an error about a missing name, formatted when somebody reads it."""

    def __init__(self, *args):
        self.args = args

    def __str__(self) -> str:
        return format_missing(*self.args)

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self):
        return str, (str(self),)


def missing(name: str, space: str, existing) -> AttributeError:
    """The error for `space.name`; `existing()` gives the names that exist.

    `hasattr`, and `getattr` with a default, raise this error only to drop it. The search for the
    nearest name reads every name there is, so it waits until somebody reads the message.

    >>> from minipaddle.core.missing import missing
    >>> print(missing("zero", "paddle", lambda: ["ones", "zeros"]))
    MiniPaddle has no paddle.zero; the nearest name is paddle.zeros
    """
    return AttributeError(LazyMessage(name, space, existing))


def format_missing(name: str, space: str, existing) -> str:
    """The message for `space.name`: why it is left out, or which name is nearest."""
    if name.startswith("_"):
        return f"{space} has no attribute {name!r}"
    why = reason(f"{space}.{name}")
    if why is not None:
        return f"{space}.{name}: {why}"
    known = {other.lower(): other for other in existing() if not other.startswith("_")}
    near = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"; the nearest name is {space}.{known[near[0]]}" if near else ""
    return f"MiniPaddle has no {space}.{name}{hint}"


def namespace(space: str, names: dict):
    """A module's `__getattr__`: `__getattr__ = namespace("paddle.nn", globals())`."""

    def __getattr__(name: str):
        raise missing(name, space, names.keys)

    return __getattr__
