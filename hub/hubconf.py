"""Small models with weights, trained by `python hub/train.py NAME`, and networks that lie in other
packages' wheels: see `paddle.hub`.
"""

import json
from collections import namedtuple
from pathlib import Path

import text_networks as _text
import wheels as _wheels

import minipaddle as paddle
from minipaddle import hub as _hub
from minipaddle.engine.core.errors import value_error as _value_error

dependencies = ["minipaddle"]
_HERE = Path(__file__).parent
_SCORES = json.loads((_HERE / "scores.json").read_text(encoding="utf-8"))
LETTERS = "\n" + "".join(map(chr, range(32, 127)))
"""What `char_gpt` reads: token k is letter k."""


def _with_weights(net, name: str, pretrained: bool):
    if pretrained:
        _hub.load_weights(net, _HERE / _SCORES[name]["weights"])
    net.eval()
    return net


def _scored(function):
    """The function; its docstring says how its weights were made, and how good they are."""
    known = _SCORES.get(function.__name__)
    function.__doc__ += f"\n\n{known['score']}\n{known['recipe']}" if known else ""
    return function


@_scored
def lenet_digits(pretrained: bool = False):
    """LeNet for images of digits, 8 x 8: float32 [n, 1, 8, 8] from 0 to 1, scores [n, 10]."""
    nn = paddle.nn
    net = nn.Sequential(
        nn.Conv2D(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    return _with_weights(net, "lenet_digits", pretrained)


@_scored
def char_gpt(pretrained: bool = False):
    """A GPT that writes English letter by letter: int64 [n, length], at most 128 letters, which
    `net.letters` numbers.
    """
    net = paddle.text.GPT(len(LETTERS), width=128, layers=3, heads=4, context=128)
    net.letters = LETTERS
    return _with_weights(net, "char_gpt", pretrained)


@_scored
def text_reader(pretrained: bool = False):
    """A reader of lines of digits, small and large Latin letters and `.,-/:%$'`, which it gives as
    small ones: [n, 3, 48, w] from -1 to 1, probabilities [n, w // 4, 46]; `net.letters` are the
    letters of the classes 1 and up, class 0 is CTC's blank.
    """
    net = _text.Reader(len(_text.LETTERS) + 1)
    net.letters = _text.LETTERS
    return _with_weights(net, "text_reader", pretrained)


@_scored
def text_finder(pretrained: bool = False):
    """A finder of text: pictures [n, 3, h, w] from -1 to 1, h and w multiples of 32, to the
    probability [n, 1, h, w] that a pixel is inside of a line.
    """
    return _with_weights(_text.Finder(), "text_finder", pretrained)


_Ocr = namedtuple("_Ocr", ["finder", "reader", "turner", "letters", "options"])


def text_system(pretrained: bool = False):
    """`text_finder` and `text_reader` as (finder, reader, turner, letters, options), as `pp_ocr_v4`
    is: what `paddle.vision.ocr.TextSystem` takes. There is no turner. The finder's map is coarse,
    so its boxes grow less; it knows lines 12 to 40 pixels high, so pictures keep their size.
    """
    finder, reader = text_finder(pretrained), text_reader(pretrained)
    return _Ocr(finder, reader, None, reader.letters, dict(_text.OPTIONS))


# ---- networks in the wheels of others ------------------------------------------------------------


def _ocr(package: str, wheel: str, *names: str) -> _Ocr:
    paths = [_wheels.find_file(package, f"models/{name}.onnx", wheel) for name in names]
    return _Ocr(*map(paddle.onnx.load, paths), _wheels.read_letters(paths[1]), {})


def pp_ocr_v4():
    """PP-OCRv4, which reads Chinese and English: (finder, reader, turner, letters, options), of
    which there are none.

    finder: pictures [n, 3, h, w] to the probability [n, 1, h, w] that a pixel is text; h and w are
    multiples of 32. reader: lines [n, 3, 48, w] from -1 to 1 to probabilities [n, steps, 6625] of
    CTC's blank and the `letters`. turner: lines [n, 3, 48, 192] to [n, 2], upright
    or upside down. From the wheel rapidocr-onnxruntime 1.4.4 (pip install
    'rapidocr-onnxruntime==1.4.4'), Apache-2.0; the networks are PaddleOCR's.

    Source: https://github.com/PaddlePaddle/PaddleOCR, https://github.com/RapidAI/RapidOCR.
    """
    names = "ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer", "ch_ppocr_mobile_v2.0_cls_infer"
    return _ocr("rapidocr_onnxruntime", "'rapidocr-onnxruntime==1.4.4'", *names)


def pp_ocr_v6():
    """PP-OCRv6 (small), which reads some more languages, as `pp_ocr_v4` gives it: 18,709 letters.

    From the wheel rapidocr 3.10 (pip install 'rapidocr==3.10.0'), Apache-2.0; the networks are
    PaddleOCR's.

    Source: https://github.com/PaddlePaddle/PaddleOCR, https://github.com/RapidAI/RapidOCR.
    """
    names = "PP-OCRv6_det_small", "PP-OCRv6_rec_small", "ch_ppocr_mobile_v2.0_cls_mobile"
    return _ocr("rapidocr", "'rapidocr==3.10.0'", *names)


def silero_vad(rate: int = 16000):
    """The probability that somebody speaks in 32 ms of sound: a network of three inputs.

    Sound [n, 576] at 16,000 samples a second (or [n, 288] with `rate=8000`), of which the first 64
    (32) are the last of the window before; the state [2, n, 128], at first zeros; the rate, int64.
    It gives ([n, 1], the next state). From the wheel silero-vad 6.2 (pip install
    'silero-vad==6.2.3'), MIT.

    Source: https://github.com/snakers4/silero-vad.
    """
    if rate not in (16000, 8000):
        raise _value_error(f"silero_vad(rate={rate})", "16000 or 8000")
    path = _wheels.find_file("silero_vad", "data/silero_vad.onnx", "'silero-vad==6.2.3'")
    window = paddle.static.InputSpec([None, 36 * rate // 1000], name="input")
    return paddle.onnx.load(path, [window])


def magika():
    """The type of a file by its content: (network, labels).

    The network takes int32 [n, 2048]: the first 1,024 bytes, without white space before them, and
    the last 1,024, without white space behind; 256 where there are fewer. It gives the
    probabilities [n, 214] of the labels. From the wheel magika 1.0 (pip install 'magika==1.0.3'),
    Apache-2.0.

    Source: https://github.com/google/magika.
    """
    files = ("model.onnx", "config.min.json")
    network, settings = (
        _wheels.find_file("magika", f"models/standard_v3_3/{name}", "'magika==1.0.3'")
        for name in files
    )
    labels = json.loads(settings.read_text(encoding="utf-8"))["target_labels_space"]
    return paddle.onnx.load(network), labels


def basic_pitch():
    """The notes in two seconds of sound: a network of sound [n, 43844, 1] at 22,050 a second.

    It gives, for 172 moments, the probabilities that each of 88 keys begins [n, 172, 88] and that
    it sounds [n, 172, 88], and of pitches in thirds of a semitone [n, 172, 264]. From the wheel
    basic-pitch 0.4 (pip install --no-deps 'basic-pitch==0.4.0'), Apache-2.0.

    Source: https://github.com/spotify/basic-pitch.
    """
    name = "saved_models/icassp_2022/nmp.onnx"
    return paddle.onnx.load(
        _wheels.find_file("basic_pitch", name, "--no-deps 'basic-pitch==0.4.0'")
    )
