"""The program that reads lines of text in pictures, without Python."""

import subprocess

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler
from minipaddle.vision import ocr
from tests.export.lines import InkReader

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
FLAGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined",
         "-fno-sanitize-recover"]  # fmt: skip
WIDTH = 160


def build(folder, net, letters):
    spec = [paddle.static.InputSpec([1, 3, 48, WIDTH], name="line")]
    paddle.jit.save(net, folder, spec, format="c", name="reader", letters=letters)
    command = [*compiler().command, *FLAGS, "read_line.c", "reader.c", "-o", "read_line"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "read_line"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("reader"), InkReader(), "é")


def read(program, *files):
    done = subprocess.run([program, *files], cwd=program.parent, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def write_picture(path, picture, comment=b""):
    """A PGM or PPM of uint8 [h, w] or [h, w, 3]."""
    high, wide = picture.shape[:2]
    kind = b"P6" if picture.ndim == 3 else b"P5"
    path.write_bytes(b"%s\n%s%d %d\n255\n" % (kind, comment, wide, high) + picture.tobytes())
    return path


def with_bars(high, wide, count):
    """Dark bars on white."""
    picture = np.full((high, wide), 255, "uint8")
    for k in range(count):
        at = (2 * k + 1) * wide // (2 * count + 1)
        picture[high // 4 : -(high // 4), at : at + wide // (2 * count + 1)] = 0
    return picture


@pytest.mark.parametrize("shape", [(48, 160), (24, 60), (96, 320), (10, 400), (120, 200)])
def test_lines_of_all_sizes_are_read(program, tmp_path, shape):
    files = [write_picture(tmp_path / f"{n}.pgm", with_bars(*shape, n)) for n in (1, 2, 3)]
    assert read(program, *files) == (0, ["é", "éé", "ééé"], "")


def test_colours_and_comments(program, tmp_path):
    picture = with_bars(48, 160, 2)
    coloured = np.stack([picture, picture, np.full_like(picture, 255)], -1)  # white in blue
    file = write_picture(tmp_path / "a.ppm", coloured, b"# by hand\n")
    blue = write_picture(tmp_path / "b.ppm", np.stack([picture] * 3, -1))
    assert read(program, file, blue) == (0, ["", "éé"], "")


class Echo(paddle.nn.Layer):
    """Each column says how bright one pixel of the line is, of 16 steps, so no number is lost."""

    def forward(self, x):
        step = ((x[0].flatten() + 1) * 7.5).floor().clip(0, 15).astype("int64")
        columns = paddle.nn.functional.one_hot(step + 1, 17)
        blank = paddle.nn.functional.one_hot(paddle.zeros_like(step), 17)
        return paddle.stack([columns, blank], 1).reshape([1, -1, 17])


def test_pixels_are_those_of_the_text_system(tmp_path):
    """Bilinear between centres, blue first, zeros to the right."""
    program = build(tmp_path, Echo(), "0123456789abcdef")
    rng = np.random.default_rng(0)
    smooth = np.kron(rng.integers(0, 256, (5, 9, 3)), np.ones((6, 6, 1))).astype("uint8")
    file = write_picture(tmp_path / "a.ppm", smooth)
    (code, (text,), errors) = read(program, file)
    assert (code, errors) == (0, "")
    got = np.array([int(c, 16) for c in text]).reshape(3, 48, WIDTH)
    wide = -(-48 * 54 // 30)
    line = np.zeros((3, 48, WIDTH), "float32")
    line[..., :wide] = ocr.resize_to(smooth[..., ::-1], 48, wide).transpose(2, 0, 1) / 127.5 - 1
    want = ((line + 1) * 7.5).clip(0, 15)
    assert abs(got - np.floor(want)).max() <= 1
    assert (got == np.floor(want)).mean() > 0.97  # whole bytes on the way of one of them


@pytest.mark.parametrize(
    "data", [b"", b"P5", b"P5\n4 4\n255\nabc", b"P3\n1 1\n255\n0", b"P5\n0 4\n255\n",
             b"P5\n-3 4\n255\n", b"P5\n99999 99999\n255\n", b"P5\n4 4\n65535\n" + bytes(32)]
)  # fmt: skip
def test_damaged_pictures_are_refused(program, tmp_path, data):
    (tmp_path / "bad.pgm").write_bytes(data)
    code, lines, error = read(program, tmp_path / "bad.pgm")
    assert (code, lines) == (1, [])
    assert "is no PGM or PPM" in error


def test_missing_files_and_no_files(program):
    assert read(program) == (0, [], "")
    code, _, error = read(program, "missing.pgm")
    assert code == 1
    assert "cannot be opened" in error
