"""Models in other runtimes: onnxruntime, and the reference implementation of ONNX."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator


def options(level) -> ort.SessionOptions:
    """A session on one thread, which does not log."""
    made = ort.SessionOptions()
    made.log_severity_level, made.graph_optimization_level = 4, level
    made.intra_op_num_threads = made.inter_op_num_threads = 1
    return made


QUIET = options(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
PLAIN = options(ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)


def by_runtime(model, arrays, fused=True) -> list[np.ndarray]:
    """The outputs of a model (a path or its bytes) in onnxruntime; `fused`: with kernels that join
    several nodes.
    """
    model = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    session = ort.InferenceSession(
        model, QUIET if fused else PLAIN, providers=["CPUExecutionProvider"]
    )
    names = [x.name for x in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def by_reference(model, arrays) -> list[np.ndarray]:
    """The outputs of a model in `onnx.reference`."""
    model = onnx.load(model) if isinstance(model, str) else model
    evaluator = ReferenceEvaluator(model)
    return evaluator.run(None, dict(zip(evaluator.input_names, arrays, strict=True)))


def error(ours, theirs) -> float:
    """The largest difference, as a share of the largest number."""
    ours, theirs = (np.asarray(x, "float64") for x in (ours, theirs))
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-30))
