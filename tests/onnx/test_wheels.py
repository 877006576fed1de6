"""Networks in the wheels of others, where these are installed, against onnxruntime."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import minipaddle as paddle
from tests.onnx.running import QUIET

RNG = np.random.default_rng(0)
image = lambda n, h, w: [RNG.standard_normal((n, 3, h, w)).astype("float32") * 0.3]
speech = lambda n, window: [RNG.standard_normal((n, window)).astype("float32") * 0.3,
                            np.zeros((2, n, 128), "float32")]  # fmt: skip
V4, V6, SILERO = "rapidocr_onnxruntime/models/", "rapidocr/models/", "silero_vad/data/silero_vad"
RATE = np.array(16000)
NETWORKS = {
    f"{V4}ch_PP-OCRv4_det_infer": [image(1, 64, 96), image(2, 32, 160)],
    f"{V4}ch_PP-OCRv4_rec_infer": [image(1, 48, 96), image(2, 48, 152)],
    f"{V4}ch_ppocr_mobile_v2.0_cls_infer": [image(1, 48, 192), image(3, 48, 192)],
    f"{V6}PP-OCRv6_det_small": [image(1, 64, 96), image(2, 32, 160)],
    f"{V6}PP-OCRv6_rec_small": [image(1, 48, 96), image(2, 48, 152)],
    f"{SILERO}_16k_op15": [[*speech(n, 576), RATE] for n in (1, 3)],
    f"{SILERO}_op18_ifless": [
        [x, np.array(rate), state]
        for n, window, rate in ((1, 576, 16000), (3, 288, 8000))
        for x, state in [speech(n, window)]
    ],
    f"{SILERO}_half": [speech(n, 576) for n in (1, 3)],
    f"{SILERO}_openvino_16k": [speech(1, 576)],
    f"{SILERO}_16k_sequence": [
        [RNG.standard_normal((n, 576)).astype("float32") * 0.3, *np.zeros((2, 1, 1, 128), "f4")]
        for n in (3, 40)
    ],
    SILERO: [[*speech(n, 576), RATE] for n in (1, 3)],
    "magika/models/standard_v3_3/model": [
        [RNG.integers(0, 257, (n, 2048), "int32")] for n in (1, 3)
    ],
    "basic_pitch/saved_models/icassp_2022/nmp": [
        [RNG.standard_normal((n, 43844, 1)).astype("float32") * 0.1] for n in (1, 2)
    ],
    "ddddocr/common": [[RNG.random((1, 1, 64, w), "float32")] for w in (96, 160)],
    "ddddocr/common_old": [[RNG.random((1, 1, 64, 96), "float32")]],
    "ddddocr/common_det": [image(1, 416, 416)],
}  # fmt: skip
LOOSE = {"ddddocr/common_old": 0.1}
"""Of those that make bytes of what they compute: a last digit decides how a number is rounded."""


def path_of(name: str) -> Path:
    """The file of a network; skips the test without its wheel."""
    package, _, rest = name.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    return Path(spec.submodule_search_locations[0], f"{rest}.onnx")


def check(net, path, inputs, tolerance=3e-5) -> None:
    """A network gives what onnxruntime gives."""
    session = ort.InferenceSession(str(path), QUIET, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    with paddle.no_grad():
        ours = net(*map(paddle.to_tensor, inputs))
    ours = ours if isinstance(ours, list | tuple) else [ours]
    for a, b in zip(ours, session.run(None, dict(zip(names, inputs, strict=True))), strict=True):
        np.testing.assert_allclose(a.numpy(), b, tolerance, tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_loads_as_it_is(name):
    path = path_of(name)
    net = paddle.onnx.load(path)
    assert net.parameters()
    for inputs in NETWORKS[name]:
        check(net, path, inputs, LOOSE.get(name, 3e-5))


def test_a_network_of_two_rates_has_either():
    """One program knows the windows of one of them; a run that asks for the other is refused."""
    path, (x, state) = path_of(SILERO), speech(2, 288)
    slow = paddle.onnx.load(path, [paddle.static.InputSpec([None, 288], name="input")])
    check(slow, path, [x, state, np.array(8000)])
    with pytest.raises(ValueError, match="takes a branch that could not be read"):
        paddle.onnx.load(path)(*map(paddle.to_tensor, [*speech(2, 576), np.array(8000)]))


def test_a_reader_trains_on():
    net = paddle.onnx.load(path_of(f"{V4}ch_PP-OCRv4_rec_infer"))
    assert len(net.parameters()) == 287
    scores = net(paddle.to_tensor(NETWORKS[f"{V4}ch_PP-OCRv4_rec_infer"][0][0]))
    (scores + 1e-9).log().mean().backward()
    assert all(p.grad is not None for p in net.parameters())
