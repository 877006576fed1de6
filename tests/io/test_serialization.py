"""save and load: what goes in comes out, files are whole or untouched, nothing is executed."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


def through(obj, **options):
    """`obj` saved and loaded."""
    file = io.BytesIO()
    paddle.save(obj, file)
    file.seek(0)
    return paddle.load(file, **options)


def same(a, b):
    """Equal in value, type and structure."""
    assert type(a) is type(b) or {type(a), type(b)} <= {paddle.Tensor, paddle.Parameter}
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, paddle.Tensor | np.ndarray | np.generic):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert list(a.shape) == list(b.shape)
    else:
        assert a == b or (a != a and b != b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [[], [0], [3, 0, 2], [2, 3]])
def test_every_dtype_and_shape(dtype, shape):
    x = paddle.ones(shape, dtype)
    same(through({"x": x}), {"x": x})
    same(through(x), x)


def test_structures():
    obj = {
        "a": [1, 2.5, None, True, "text", float("inf"), float("nan"), 2**80],
        "b": (paddle.ones([2]), {"c": np.arange(3), 4: np.float32(1.5), None: ()}),
        "b.0": paddle.zeros([1]),  # the path of the tensor above, spelled as a key
        "__metadata__": paddle.zeros([1]),
        "": [[]],
    }
    same(through(obj), obj)


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
    st.sampled_from(DTYPES).map(lambda d: paddle.zeros([2], d)),
)  # fmt: skip
trees = st.recursive(
    leaves,
    lambda t: (
        st.lists(t, max_size=3)
        | st.lists(t, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), t, max_size=3)
    ),
    max_leaves=12,
)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(trees)
def test_any_structure(tree):
    same(through(tree), tree)


def test_views_and_other_byte_orders():
    x = paddle.arange(12).reshape([3, 4])
    same(through(x.transpose([1, 0])[::2]), x.transpose([1, 0])[::2])
    big = np.arange(3, dtype=">f4")
    np.testing.assert_array_equal(through(big), big)


def test_a_model_its_optimizer_and_its_schedule(tmp_path):
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.BatchNorm1D(4))
    path = tmp_path / "deep" / "model.pdparams"
    paddle.save(net.state_dict(), str(path))
    loaded = paddle.load(path)
    same(dict(net.state_dict()), loaded)
    assert all(type(v) is np.ndarray for v in paddle.load(path, return_numpy=True).values())
    assert set(safetensors.numpy.load_file(path)) == set(net.state_dict())


def test_a_file_of_another_program(tmp_path):
    safetensors.numpy.save_file({"w": np.ones(2, "float32")}, tmp_path / "w.safetensors")
    same(paddle.load(tmp_path / "w.safetensors"), {"w": paddle.ones([2])})


def loop():
    a = []
    a.append(a)
    return a


@pytest.mark.parametrize(
    ("obj", "error", "says"),
    [
        ({"x": [0, 1, 2, print]}, TypeError, r"obj\['x'\]\[3\] is a function"),
        ([{1, 2}], TypeError, r"obj\[0\] is a set"),
        (paddle.nn.Linear(1, 1), TypeError, r"is a Linear(.|\n)*obj.state_dict\(\), path"),
        ({"s": paddle.optimizer.lr.StepDecay(0.1, 2)}, TypeError, r"obj\['s'\].state_dict\(\)"),
        ({(1, 2): 3}, TypeError, r"obj has the key \(1, 2\)"),
        (np.array(["text"]), TypeError, "obj is an array of <U4"),
        (np.ones(2, "complex64"), TypeError, "complex64"),
        (loop(), ValueError, r"obj\[0\] contains itself"),
        (b"bytes", TypeError, "obj is a bytes"),
    ],
)
def test_what_can_not_be_saved_is_named(obj, error, says, tmp_path):
    with pytest.raises(error, match=says):
        paddle.save(obj, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_exist(tmp_path):
    with pytest.raises(TypeError, match="use_binary_format"):
        paddle.save({}, tmp_path / "x", use_binary_format=True)
    with pytest.raises(TypeError):
        paddle.load(tmp_path / "x", model_filename="y")
    with pytest.raises(FileNotFoundError):
        paddle.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="name of a file"):
        paddle.save({}, tmp_path)


# ---- files that are not what they should be ------------------------------------------------------


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def file_of(obj):
    file = io.BytesIO()
    paddle.save(obj, file)
    return file.getvalue()


GOOD = file_of({"w": paddle.ones([4]), "n": 1})


def header(data: bytes, body: bytes = b"") -> bytes:
    return len(data).to_bytes(8, "little") + data + body


def with_structure(structure) -> bytes:
    meta = {"format": "minipaddle-1", "structure": structure}
    return safetensors.numpy.save({"w": np.ones(1)}, meta)


HUGE = {"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
LYING = {"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        *[(pickle.dumps(Evil(), p), "is a pickle(.|\n)*return_numpy=True") for p in range(2, 6)],
        (pickle.dumps(Evil(), 0), "no safetensors file"),
        (b"", "is empty"),
        (b"PK\x03\x04" + bytes(40), "zip archive"),
        (b"\xff" * 100, "no safetensors file"),
        (GOOD[:-1], "damaged"),
        (GOOD[:20], "damaged"),
        (GOOD[:7], "damaged"),
        (GOOD + b"more", "damaged"),
        (header(json.dumps(HUGE).encode()), "damaged"),
        (header(json.dumps(LYING).encode(), bytes(4)), "damaged"),
        (header(b'{"w":'), "damaged"),
        (with_structure("{"), "structure makes no sense"),
        (with_structure('{"tensor": "missing"}'), "structure makes no sense"),
        (with_structure('{"code": "x"}'), "structure makes no sense"),
        (with_structure('{"dict": [1]}'), "structure makes no sense"),
        (with_structure('{"dict": [[[1], 2]]}'), "structure makes no sense"),
        (with_structure('{"list": [' * 100_000), "structure makes no sense"),
        (with_structure('{"list": 5}'), "structure makes no sense"),
        (with_structure("[]"), "structure makes no sense"),
        (with_structure('{"list": [{"tensor": "w"}, {"array": "w"}]}'), "makes no sense"),
        (safetensors.numpy.save({"w": np.ones(1, "uint32")}), "x.pdparams: tensor 'w' has .* U32"),
        (safetensors.numpy.save({}, {"format": "minipaddle-2"}), "a newer MiniPaddle wrote it"),
    ],
)  # fmt: skip
def test_a_bad_file_is_an_error_and_nothing_runs(data, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pdparams").write_bytes(data)
    with pytest.raises(ValueError, match=says):
        paddle.load("x.pdparams")
    assert [p.name for p in tmp_path.iterdir()] == ["x.pdparams"]


def test_a_small_file_takes_little_memory():
    """One tensor, named 2,000 times, is refused before it is copied."""
    structure = json.dumps({"list": [{"tensor": "w"}] * 2000})
    meta = {"format": "minipaddle-1", "structure": structure}
    data = safetensors.numpy.save({"w": np.ones(2**18, "float32")}, meta)
    tracemalloc.start()
    with pytest.raises(ValueError, match="makes no sense"):
        paddle.load(io.BytesIO(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(data)


def test_truths_of_other_bytes_are_truths():
    data = bytearray(safetensors.numpy.save({"t": np.array([True, False, True])}))
    data[-3:] = bytes([2, 0, 255])
    t = paddle.load(io.BytesIO(bytes(data)))["t"]
    assert t.numpy().view("uint8").tolist() == [1, 0, 1]
    assert paddle.load(io.BytesIO(bytes(data)), return_numpy=True)["t"].tolist() == [
        True,
        False,
        True,
    ]


def test_any_damage_is_a_value_error_or_no_damage():
    """Change every byte in turn: never another exception, never a crash, never another value."""
    for place in range(len(GOOD)):
        for value in (0x00, 0x22, 0x7F, GOOD[place] ^ 1):
            damaged = bytearray(GOOD)
            damaged[place] = value
            try:
                found = paddle.load(io.BytesIO(bytes(damaged)))
            except ValueError:
                continue
            same(found, {"w": paddle.ones([4]), "n": 1})


def test_a_flipped_bit_is_reported_by_the_name_of_its_tensor(tmp_path):
    path = tmp_path / "x.pdparams"
    for kind in DTYPES:
        paddle.save({"a": {"w": paddle.ones([3], kind)}, "b": paddle.ones([2, 2], kind)}, path)
        whole = path.read_bytes()
        start = 8 + int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:start])
        for name in ("a.w", "b"):
            first, last = header[name]["data_offsets"]
            for place in (first, last - 1):
                data = bytearray(whole)
                data[start + place] ^= 4
                path.write_bytes(data)
                says = rf"x\.pdparams is damaged: the bytes of the tensor '{name}' have changed"
                with pytest.raises(ValueError, match=says):
                    paddle.load(path)
                with pytest.raises(ValueError, match=says.partition(" ")[2]):
                    paddle.load(io.BytesIO(bytes(data)))


def test_a_file_of_an_older_version_loads():
    """It has no sums; `tests/data` holds none, so they are taken out of a new one."""
    start = 8 + int.from_bytes(GOOD[:8], "little")
    header = json.loads(GOOD[8:start])
    for key in ("sum", "sums"):
        del header["__metadata__"][key]
    text = json.dumps(header).encode()
    old = len(text).to_bytes(8, "little") + text + GOOD[start:]
    same(paddle.load(io.BytesIO(old)), {"w": paddle.ones([4]), "n": 1})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
@pytest.mark.timeout(20)
def test_a_fifo_is_refused(tmp_path):
    """Who opens one waits for a writer."""
    os.mkfifo(tmp_path / "x.pdparams")
    with pytest.raises(ValueError, match=r"x\.pdparams is a FIFO"):
        paddle.load(tmp_path / "x.pdparams")
    with pytest.raises(ValueError, match="is a device"):
        paddle.load("/dev/zero")


# ---- whole or not at all -------------------------------------------------------------------------

SAVING = """
    import sys
    import minipaddle as paddle

    size = 4_000_000
    for k in range(1, 1000):
        paddle.save({"k": k, "w": paddle.full([size], float(k))}, sys.argv[1])
        print(k, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("after", [0.0, 0.004, 0.011, 0.02, 0.03])
def test_killed_while_saving(after, tmp_path):
    path = tmp_path / "state"
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SAVING), path], stdout=subprocess.PIPE, text=True
    )
    saved = int(program.stdout.readline())
    time.sleep(after)
    program.send_signal(signal.SIGKILL)
    saved = int([saved, *program.stdout.read().split()][-1])
    program.wait()
    program.stdout.close()
    state = paddle.load(path)
    assert state["k"] in (saved, saved + 1)
    assert (state["w"] == state["k"]).all()


FULL = """
    import resource, signal, sys
    import minipaddle as paddle

    paddle.save({"w": paddle.ones([10])}, sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    paddle.save({"w": paddle.zeros([1_000_000])}, sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on file sizes")
def test_a_full_disk(tmp_path):
    """A file may grow to 100 kB and no further, as on a full disk."""
    path = tmp_path / "state"
    command = [sys.executable, "-c", textwrap.dedent(FULL), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "could not save (File too large)" in done.stderr
    assert "the old file is untouched" in done.stderr
    assert paddle.load(path)["w"].tolist() == [1.0] * 10
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "state"
    paddle.save([1], path)
    plain = (tmp_path / "other").touch() or (tmp_path / "other").stat().st_mode
    assert path.stat().st_mode == plain
    path.chmod(0o604)
    paddle.save([2], path)
    assert path.stat().st_mode & 0o777 == 0o604
    assert paddle.load(path) == [2]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    paddle.save([1], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert paddle.load(tmp_path / "real") == [1]
