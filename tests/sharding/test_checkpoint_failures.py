"""A checkpoint is written whole or not at all; damaged ones and wrong calls are refused by name."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.core import files
from minipaddle.distributed.checkpoint import manifest, saving
from minipaddle.distributed.checkpoint.boxes import fills
from minipaddle.distributed.tensors.dist_tensor import cut_tensor

from .checkpoints import LAYOUTS, S, check, read, state_of, times, write
from .models import R

# ---- in a thread ---------------------------------------------------------------------------------


def held_up(monkeypatch, free: int = 0, error=None) -> threading.Event:
    """Let files be written only after an event, but for the first ones; or let them fail."""
    plain, gate, calls = saving.write_tensors, threading.Event(), []

    def write(*args):
        calls.append(None)
        if error is not None:
            raise error
        assert len(calls) <= free or gate.wait(60)
        plain(*args)

    monkeypatch.setattr(saving, "write_tensors", write)
    return gate


def test_a_thread_writes_what_was_there(monkeypatch, tmp_path):
    gate = held_up(monkeypatch)

    def work():
        state = state_of("2x2", lambda a: a)
        dist.save_state_dict(state, tmp_path, async_save=True)
        for x in state["inner"]["deep"].values():
            x.set_value(paddle.zeros_like(x))
        dist.barrier()  # the collectives of training go on beside it
        assert not list(tmp_path.glob("*.metadata"))
        dist.barrier()
        gate.set()

    dist.spawn(work, nprocs=4)  # the ranks' end waits
    check(read("one", tmp_path))


def test_the_next_save_waits(monkeypatch, tmp_path):
    gate = held_up(monkeypatch, free=2)

    def work():
        for k in range(2):
            state = {"x": paddle.full([2], k), "y": paddle.full([2], k)}
            dist.save_state_dict(state, tmp_path, async_save=True)
        found = sorted(p.name for p in tmp_path.glob("*.metadata"))
        dist.barrier()
        gate.set()
        return found

    assert dist.spawn(work, nprocs=2).results == [["0.metadata"]] * 2
    assert sorted(p.name for p in tmp_path.glob("*.metadata")) == ["0.metadata", "1.metadata"]


@pytest.mark.parametrize("later", ["save", "load", "end"])
def test_the_error_of_a_thread_comes_later(monkeypatch, tmp_path, later):
    held_up(monkeypatch, error=OSError(28, "No space left on device"))

    def work():
        state = {"x": paddle.ones([2])}
        dist.save_state_dict(state, tmp_path, async_save=True)
        if later != "end":
            with pytest.raises(OSError, match=r"rank 0: .*No space left"):
                (dist.save_state_dict if later == "save" else dist.load_state_dict)(state, tmp_path)
            return True

    if later == "end":
        with pytest.raises(OSError, match="No space left"):
            dist.spawn(work, nprocs=2)
    else:
        assert dist.spawn(work, nprocs=2).results == [True, True]
    assert not os.listdir(tmp_path)


# ---- whole or not at all -------------------------------------------------------------------------

STEPS = {
    "a rank's file": (saving, "write_tensors"),
    "a rank's sum": (saving, "size_and_sum"),
    "bringing files to the disk": (files, "write"),
    "bringing names to the disk": (files, "sync_folder"),
    "the name of the metadata": (os, "replace"),
}


class Death(BaseException):
    """What no `except Exception` sees: the end of a rank."""


@pytest.mark.parametrize("kind", [lambda: OSError(28, "No space left on device"), Death])
@pytest.mark.parametrize("at", [1, 2, 3, 5])
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_leaves_the_old_checkpoint(monkeypatch, tmp_path, step, at, kind):
    """Of call number `at` of a step of the write, in whichever rank it is."""
    write("2x2", tmp_path, unique_id=0)
    before = sorted(os.listdir(tmp_path))
    module, name = STEPS[step]
    plain, calls = getattr(module, name), []

    def failing(*args):
        calls.append(None)
        if len(calls) == at:
            raise kind()
        return plain(*args)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, failing)
        try:
            write("rows of 4", tmp_path, times(2), unique_id=0)
            failed = False
        except (OSError, Death):
            failed = True
    is_new = (tmp_path / "0.metadata").read_text().count("Shard(dim=0)] on {shape: [4]") > 0
    assert is_new or failed
    check(read("columns of 3", tmp_path), times(2 if is_new else 1))
    if failed and kind is not Death and not is_new:
        assert sorted(os.listdir(tmp_path)) == before
    write("plain", tmp_path, times(3), unique_id=0)  # and what is left of it goes
    assert len(os.listdir(tmp_path)) == 3
    check(read("one", tmp_path), times(3))


# ---- what is refused -----------------------------------------------------------------------------


def refused(folder, match, layout="columns of 3", error=ValueError):
    """All ranks raise one error, which says so."""

    def work():
        with pytest.raises(error, match=match):
            dist.load_state_dict(state_of(layout, np.zeros_like), folder)
        return True

    assert all(dist.spawn(work, nprocs=LAYOUTS[layout][0]).results)


def change(folder, edit) -> None:
    path = Path(folder) / "0.metadata"
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def entry(data, name: str) -> dict:
    return next(x for x in data["tensors"] if x["path"][-1] == name)


def rename(data, new: str) -> None:
    old = next(iter(data["files"]))
    data["files"][new] = data["files"].pop(old)


def lie(name: str, key: str, value):
    return lambda data: entry(data, name).update({key: value})


def overlap(data):
    pieces = entry(data, "matrix")["pieces"]
    pieces[1]["box"] = pieces[0]["box"]


def nested(data):
    data["values"].append({"path": [*entry(data, "matrix")["path"], "x"], "value": 1})


def huge(data):
    x = entry(data, "row")
    x.update(shape=[10**18], dtype="int32", pieces=[{**x["pieces"][0], "box": [[0, 10**18]]}])


def many_axes(data):
    x = entry(data, "row")
    boxes = [[[k, 1]] * 9 for k in range(2)]
    x.update(shape=[2] * 9, pieces=[{**x["pieces"][0], "box": box} for box in boxes])


HOSTILE = {
    "a name with ..": (
        lambda d: rename(d, "../0_0.0123456789abcdef.safetensors"),
        "no name of a file",
    ),
    "an absolute name": (lambda d: rename(d, "/etc/passwd"), "no name of a file"),
    "another format": (lambda d: d.update(format="minipaddle checkpoint 2"), "format"),
    "no tensors": (lambda d: d.pop("tensors"), "tensors"),
    "a file that is not listed": (lambda d: d["files"].popitem(), "is listed"),
    "a larger shape": (lie("matrix", "shape", [7, 6]), "do not make the whole"),
    "a negative size": (lie("matrix", "shape", [-7, 5]), "-7"),
    "another number of axes": (lie("matrix", "shape", [35]), "damaged"),
    "an unknown dtype": (lie("matrix", "dtype", "object"), "object"),
    "another dtype": (lie("cube", "dtype", "int16"), "float16.*here"),
    "a path of numbers": (lie("matrix", "path", [1]), "path"),
    "a tensor without pieces": (lie("matrix", "pieces", []), "do not make the whole"),
    "a piece twice": (overlap, "do not make the whole"),
    "a wrong sum": (lambda d: [f.update(crc32=1) for f in d["files"].values()], "CRC-32 00000001"),
    "a wrong size": (lambda d: [f.update(bytes=9) for f in d["files"].values()], "9 bytes"),
    "a tensor twice": (lambda d: d["tensors"].append(d["tensors"][0]), "has the name of"),
    "a value in a tensor": (nested, "lies in state_dict.*no dict"),
    "a size that no file has": (huge, "bytes, its pieces 40{15}"),
    "pieces of too many axes": (many_axes, "cut along 9 axes"),
    "a size that is true": (lambda d: [f.update(bytes=True) for f in d["files"].values()], "True"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_metadata_that_lies(tmp_path, case):
    write("2x2", tmp_path)
    edit, match = HOSTILE[case]
    change(tmp_path, edit)
    refused(tmp_path, f"(?s).*{match}")


def test_metadata_that_lies_of_what_a_file_has(tmp_path):
    """Boxes that make a whole of another shape than the file's pieces."""
    write("one", tmp_path)

    def edit(data):
        x = entry(data, "matrix")
        x["shape"] = [5, 7]
        x["pieces"][0]["box"] = [[0, 5], [0, 7]]

    change(tmp_path, edit)
    with pytest.raises(ValueError, match=r"matrix is .*\[7, 5\]"):
        dist.load_state_dict({}, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\x80\x04K\x01."])
def test_metadata_that_is_none(tmp_path, text):
    write("2x2", tmp_path)
    (tmp_path / "0.metadata").write_text(text, "latin1")
    refused(tmp_path, "0.metadata is damaged|utf-8")


def test_a_file_that_is_missing_or_damaged(tmp_path):
    write("2x2", tmp_path)
    victim = sorted(tmp_path.glob("*.safetensors"))[2]
    data = victim.read_bytes()
    for wrong in (data[:-1], data + b"\0", data[:-1] + bytes([data[-1] ^ 1]), b""):
        victim.write_bytes(wrong)
        refused(tmp_path, f"{victim.name} is damaged")
    victim.unlink()
    refused(tmp_path, f"{victim.name} is missing", error=FileNotFoundError)
    refused(tmp_path / "elsewhere", "no file of a checkpoint", error=FileNotFoundError)


def test_nothing_is_changed_by_a_failure(tmp_path):
    write("2x2", tmp_path)

    def work():
        x = paddle.zeros([7, 5])
        with pytest.raises(ValueError, match=r"\['b'\] is not in .*0.metadata"):
            dist.load_state_dict({"inner": {"deep": {"matrix": x}}, "b": x}, tmp_path)
        return float(x.abs().sum())

    assert dist.spawn(work, nprocs=2).results == [0.0, 0.0]


def shards(placements, value=1.0):
    return dist.shard_tensor(paddle.full([4], value), dist.ProcessMesh([0, 1]), placements)


def cut_otherwise():
    """A tensor that ranks cut in other ways, as `shard_tensor` would refuse to."""
    place = S(0) if dist.get_rank() else R
    return {"x": cut_tensor(paddle.ones([4]), dist.ProcessMesh([0, 1]), [place])}


def differing():
    return {"x": paddle.ones([4 - dist.get_rank()])}


REFUSED = {
    "another shape": (differing, r"rank 1.*float32\[4\] before it"),
    "placements that differ": (cut_otherwise, "do not make"),
    "numbers that differ": (lambda: {"n": dist.get_rank()}, r"\['n'\] is 1 in rank 1, 0 before it"),
    "terms": (lambda: {"x": shards([dist.Partial()])}, "is of terms"),
    "one name for two": (lambda: {"a.b": paddle.ones([1]), "a": {"b": paddle.ones([1])}}, "'a.b'"),
    "a list of tensors": (lambda: {"a": [paddle.ones([1])]}, "tensors in dicts"),
    "a layer": (lambda: {"a": {"net": paddle.nn.Linear(1, 1)}}, r"\['net'\] is a Linear"),
    "a key that is no string": (lambda: {1: paddle.ones([1])}, "expected: a string"),
    "no dict": (lambda: [1], "expected: a dict"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_state_dicts_that_are_refused(tmp_path, case):
    make, match = REFUSED[case]

    def work():
        with pytest.raises((TypeError, ValueError), match=f"(?s){match}"):
            dist.save_state_dict(make(), tmp_path)
        return True

    assert dist.spawn(work, nprocs=2).results == [True, True]
    assert not os.listdir(tmp_path)


def test_options_that_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="save_replicas"):
        dist.save_state_dict({}, tmp_path, save_replicas=True)
    with pytest.raises(NotImplementedError, match="aoa_config"):
        dist.load_state_dict({}, tmp_path, aoa_config={"a": 1})
    with pytest.raises(ValueError, match="-1"):
        dist.save_state_dict({}, tmp_path, unique_id=-1)


def test_a_metadata_file_says_what_was_saved(tmp_path):
    write("2x2", tmp_path)
    name = str(tmp_path / "0.metadata")
    text = Path(name).read_text()
    found = manifest.parse(text, name)
    assert found.text() == text
    assert found.tensors["inner", "deep", "matrix"].placements.startswith("[Shard(dim=0), Shard")


@pytest.mark.parametrize("name", ["0.metadata", "a file"])
def test_what_is_no_file_is_not_waited_for(tmp_path, name):
    """A pipe has no end: who opens it waits for a writer."""
    write("plain", tmp_path)
    found = tmp_path / name if name == "0.metadata" else sorted(tmp_path.glob("*.safetensors"))[0]
    found.unlink()
    os.mkfifo(found)
    refused(tmp_path, "is missing|no file of", "plain", FileNotFoundError)


def test_a_checkpoint_of_another_model(tmp_path):
    """All ranks say what differs, and have what they had."""

    def work():
        mesh = dist.ProcessMesh([0, 1])
        net, other = paddle.nn.Linear(4, 6), paddle.nn.Linear(4, 5)
        for layer in (net, other):
            for p in layer.parameters():
                dist.shard_tensor(dist.broadcast(p, 0) and p, mesh, [dist.Shard(0)])
        dist.save_state_dict(net.state_dict(), tmp_path)
        before = {name: x.numpy() for name, x in other.state_dict().items()}
        with pytest.raises(ValueError, match=r"(?s)\['weight'\] is float32\[4, 5\].*\[4, 6\], as"):
            dist.load_state_dict(other.state_dict(), tmp_path)
        for name, x in other.state_dict().items():
            np.testing.assert_array_equal(x.numpy(), before[name])
        return True

    assert dist.spawn(work, nprocs=2).results == [True, True]


def brute_force(boxes, box) -> bool:
    """Whether each element of a box is in one of others."""
    count = np.zeros([n for _, n in box], int)
    for each in boxes:
        count[tuple(slice(start, start + rows) for start, rows in each)] += 1
    return bool((count == 1).all())


def test_boxes_fill_what_they_cover_once():
    """Random boxes, cut from a whole or not, by brute force."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(400):
        sizes = rng.integers(1, 5, rng.integers(1, 4))
        box, boxes = tuple((0, int(n)) for n in sizes), [tuple((0, int(n)) for n in sizes)]
        for _ in range(rng.integers(0, 4)):  # cut one in two, sometimes wrongly
            k, d = rng.integers(len(boxes)), rng.integers(len(box))
            start, rows = boxes[k][d]
            at, gap = int(rng.integers(0, rows + 1)), int(rng.random() < 0.2)
            parts = (start, at), (start + at - min(gap, at), rows - at + min(gap, at))
            boxes[k : k + 1] = [(*boxes[k][:d], part, *boxes[k][d + 1 :]) for part in parts]
        found = fills(boxes, box)
        seen.add(found)
        assert found == brute_force(boxes, box), boxes
    assert seen == {True, False}
