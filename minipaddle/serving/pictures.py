"""Models that read pictures: a picture comes in, boxes and texts go out.

One thread for each model takes all pictures that wait, finds the lines in each, and reads the lines
of all of them in batches. Requests reach it through a queue. A picture is the body of a request, as
PNG, JPEG or what else Pillow opens, or the input `image` of the protocol.
"""

import asyncio
import io
import json
import queue
import threading
from contextlib import suppress
from time import monotonic

import numpy as np

from ..engine.core.dim import symbol
from ..engine.core.record import Spec
from ..vision.ocr import LineOfText, TextSystem
from .protocol import BadRequest, InferRequest, RequestLimits, read_request
from .runner import RUN_LIMIT, Refused

SIZES = tuple(symbol(name, 1) for name in ("height", "width", "channels"))
INPUTS = {"image": Spec(SIZES, np.dtype("uint8"))}
OUTPUTS = {"boxes": ("INT32", [-1, 4, 2]), "texts": ("BYTES", [-1]), "scores": ("FP32", [-1])}
TOGETHER = 8
"""Pictures whose lines are read together."""


class PictureReader:
    """A `TextSystem`, and the thread that runs it.

    capacity: pictures that may wait; limit: seconds of a run; one that takes longer counts as one
    that never ends
    """

    def __init__(self, system: TextSystem, capacity: int = 64, limit: float = RUN_LIMIT):
        self.system, self.capacity, self.limit = system, capacity, limit
        self.waiting: queue.SimpleQueue = queue.SimpleQueue()
        self.began = None  # when the run that goes on began
        self.thread = threading.Thread(target=self.work, name="pictures", daemon=True)
        self.thread.start()

    @property
    def hangs(self) -> bool:
        """Whether a run takes longer than it may."""
        began = self.began
        return began is not None and monotonic() - began > self.limit

    def require_room(self) -> None:
        """Raise Refused if no further picture may wait."""
        if self.hangs:
            raise Refused(503, "a run of the model does not end", 1.0)
        if self.waiting.qsize() >= self.capacity:
            raise Refused(503, "too many pictures wait; try again later", 1.0)

    def work(self) -> None:
        """Read what waits, all together; without requests, wait."""
        while (first := self.waiting.get()) is not None:
            taken = [first]
            while len(taken) < TOGETHER and not self.waiting.empty():
                taken.append(self.waiting.get())
            ends, taken = None in taken, [each for each in taken if each is not None]
            self.began = monotonic()
            results = self.run([picture for picture, _ in taken])
            self.began = None
            for (_, settle), result in zip(taken, results, strict=True):
                settle(result)
            if ends:
                return

    def run(self, pictures: list) -> list:
        """For each picture its lines, or the error that it alone leads to."""
        try:
            return self.system.read_pictures(pictures)
        except Exception as error:
            if len(pictures) < 2:
                return [error]
        return [result for picture in pictures for result in self.run([picture])]

    async def read(self, picture) -> list[LineOfText]:
        """The lines of a picture uint8 [h, w, channels]. Raises Refused if a run does not end."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def settle(result):
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle_future, future, result)

        self.waiting.put((picture, settle))
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self.limit / 4, 0.01)):
                    return await asyncio.shield(future)
            if self.hangs:
                raise Refused(504, "a run of the model does not end")

    def close(self, limit: float | None = None) -> bool:
        """End the thread after its run; False if that does not end within `limit` seconds."""
        self.waiting.put(None)
        self.thread.join(limit)
        return not self.thread.is_alive()


def settle_future(future, result) -> None:
    """Give a future its result, or its error, unless nobody waits any more."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


# ---- requests and answers ------------------------------------------------------------------------


def read_picture(
    body: bytes, media: str, length: str | None, limits: RequestLimits
) -> tuple[InferRequest, np.ndarray]:
    """(the request, its picture uint8 [h, w, channels]) of a body of the protocol, or of a picture
    as a file. Raises BadRequest.
    """
    if media.startswith("image/"):
        names = dict.fromkeys(OUTPUTS)
        return read_request(b'{"inputs": []}', None, {}, names, limits), open_file(body, limits)
    asked = read_request(body, length, INPUTS, dict.fromkeys(OUTPUTS), limits)
    if any(wanted.binary for wanted in asked.outputs):
        raise BadRequest("texts and boxes are sent as JSON: ask for no binary_data")
    return asked, asked.arrays[0]


def open_file(body: bytes, limits: RequestLimits) -> np.ndarray:
    """The pixels of a picture in a file, uint8 [h, w, channels]."""
    try:
        from PIL import Image
    except ImportError:
        raise Refused(501, "pictures as files need Pillow where the server runs") from None
    try:
        with Image.open(io.BytesIO(body)) as picture:
            width, height = picture.size
            if width * height * 3 > limits.elements:
                raise BadRequest(f"the picture has {width} x {height} pixels, which is too many")
            return np.asarray(picture.convert("L" if picture.mode == "L" else "RGB"))
    except BadRequest:
        raise
    except Exception as error:  # Pillow raises many kinds for damaged files
        raise BadRequest(f"the body is no picture that Pillow reads: {error!s:.100}") from None


def write_lines(model: str, asked: InferRequest, lines: list[LineOfText]) -> bytes:
    """The answer: of each line its corners from the top left, what it says, how surely."""
    data = {
        "boxes": [int(n) for line in lines for n in np.ravel(line.box)],
        "texts": [line.text for line in lines],
        "scores": [round(float(line.score), 6) for line in lines],
    }
    outputs = [
        {"name": name, "datatype": OUTPUTS[name][0], "shape": [len(lines), *OUTPUTS[name][1][1:]],
         "data": data[name]}
        for name, _ in asked.outputs
    ]  # fmt: skip
    message = {"model_name": model, "model_version": "1", "outputs": outputs}
    message |= {"id": asked.id} if asked.id else {}
    return json.dumps(message, ensure_ascii=False).encode()


def describe_pictures(name: str) -> dict:
    """The metadata of a model that reads pictures."""
    image = {"name": "image", "datatype": "UINT8", "shape": [-1, -1, -1]}
    outputs = [{"name": k, "datatype": t, "shape": s} for k, (t, s) in OUTPUTS.items()]
    return {"name": name, "versions": ["1"], "platform": "minipaddle", "inputs": [image],
            "outputs": outputs}  # fmt: skip
