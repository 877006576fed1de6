"""The search for a layout, its report, its map, and the command."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.__main__ import main
from minipaddle.distributed.planner import Recipe, SearchLimits, StageJob, describe, figures, search
from minipaddle.distributed.planner.report import mesh_map
from minipaddle.distributed.planner.search import choose, divisors, layouts
from minipaddle.distributed.simulator import H100, NDR, NVLINK4, Cluster, cluster_named
from minipaddle.static import InputSpec

from .models import Decoder


@pytest.fixture(scope="module")
def by_ranks():
    with paddle.LazyGuard():
        net = Decoder(8000, 1024, 8, 12)
    return {n: figures(net, InputSpec([1024], "int64"), n) for n in (1, 2, 4)}


def job(by_ranks, machines=2, memory=80e9, between=NDR) -> StageJob:
    device = H100._replace(memory=memory)
    return StageJob(by_ranks, device, Cluster(machines, 8, NVLINK4, between), Recipe())


def test_every_layout_uses_all_devices_and_the_batch(by_ranks):
    seen = set()
    for layout in layouts(job(by_ranks), 64, SearchLimits()):
        assert (layout.ranks, layout.batch) == (16, 64)
        assert layout not in seen
        seen.add(layout)
        assert layout.chunks == 1 or 12 % (layout.pipe * layout.chunks) == 0
    assert {s.pipe for s in seen} == {1, 2, 4, 8}
    assert {s.model for s in seen} == {1, 2, 4}
    assert {s.sep for s in seen} == {1, 2, 4, 8}
    assert {s.schedule for s in seen} == {"", "1F1B", "VPP", "ZBH1", "ZBV"}


def test_the_search_is_that_of_all_costs(by_ranks):
    """The first one is the shortest, or as good as that and simpler."""
    found = search(job(by_ranks), 64)
    shortest = min(c.seconds.total for c in found.fits)
    assert found.best.seconds.total <= 1.005 * shortest
    assert len(found.fits) + len(found.too_large) == len([*layouts(found.job, 64, SearchLimits())])
    assert found.next_best.layout.sizes != found.best.layout.sizes
    assert all(held.total > H100.memory for _, held in found.too_large)


def test_less_memory_means_another_plan(by_ranks):
    """With 80 GB all is kept; with 2 GB blocks are cut or computed again; with 50 MB none fits."""
    rich, poor = (search(job(by_ranks, memory=n), 64) for n in (80e9, 2e9))
    assert poor.best.memory.total <= 2e9 < rich.best.memory.total
    assert poor.best.seconds.total > rich.best.seconds.total
    with pytest.raises(ValueError, match=r"50 MB\n.* MB for each device with"):
        search(job(by_ranks, memory=5e7), 64)
    with pytest.raises(ValueError, match="that the ranks of data parallel divide"):
        search(job(by_ranks), 63, SearchLimits(model=1, pipe=1))


def test_slow_links_between_machines_avoid_gradients(by_ranks):
    """What crosses machines then is the pipe: activations are less than gradients."""
    slow = NDR._replace(bandwidth=NDR.bandwidth / 2000)
    fast, other = (search(job(by_ranks, between=link), 64).best.layout for link in (NDR, slow))
    assert fast.pipe == 1
    assert other.pipe > 1
    assert other.sharding * other.model * other.data <= 8


def test_a_long_sequence_is_cut():
    """Where the values of one sequence fit on no device, ranks along sep share it."""
    with paddle.LazyGuard():
        net = Decoder(8000, 1024, 8, 4)
    found = {1: figures(net, InputSpec([1 << 19], "int64"))}
    long, limits = (
        StageJob(found, H100, Cluster(1, 8, NVLINK4)),
        SearchLimits(pipe=1, recompute=False),
    )
    best = search(long, 8, limits).best
    assert best.layout.sep > 1
    assert best.seconds.sep >= 0
    assert f"sep {best.layout.sep}" in str(best.layout)
    with pytest.raises(ValueError, match="GB for each device with"):
        search(long, 8, limits._replace(sep=1))


def test_limits(by_ranks):
    found = search(job(by_ranks), 64, SearchLimits(2, 1, (0,), False, False))
    assert {c.layout.pipe for c in found.fits} == {1}
    assert {c.layout.stage for c in found.fits} == {0}
    assert max(c.layout.model for c in found.fits) == 2


def test_of_about_equal_ones_the_simplest_is_chosen(by_ranks):
    costs = search(job(by_ranks), 64).fits
    a, b = costs[0], costs[1]
    same = b._replace(
        layout=a.layout._replace(recompute=True),
        seconds=a.seconds._replace(compute=0.999 * a.seconds.compute),
    )
    assert choose([same, a]) == [a, same]
    faster = same._replace(seconds=a.seconds._replace(compute=0.9 * a.seconds.compute))
    assert choose([a, faster]) == [faster, a]


def test_the_report(by_ranks):
    found = search(job(by_ranks, memory=7e8), 64)
    lines = describe(found).splitlines()
    assert lines[0] == f"plan      {found.best.layout}"
    assert f"{found.best.utilization:.1%} of the devices' peak" in lines[1]
    assert " of 700 MB: weights" in lines[2]
    assert lines[3].startswith("binds     ")
    assert any("recompute no: +" in line for line in lines)
    assert lines[-2].startswith("next")
    assert lines[-1].startswith("tried")


def test_the_map(by_ranks):
    found = search(job(by_ranks, memory=7e8), 64)
    cells = mesh_map(found)
    assert set(cells) == {
        (layout.pipe, layout.model) for layout in layouts(found.job, 64, SearchLimits())
    }
    best = found.best.layout
    assert cells[best.pipe, best.model][1] == 1
    picture = viz.plan_map(found)
    assert picture.text.count("best") == 1
    bars = picture.figure.axes[0].patches
    assert len(bars) == len(cells)
    hatched = sum(bool(bar.get_hatch()) for bar in bars)
    assert hatched == sum(ratio is None for _, ratio, _ in cells.values()) > 0


def test_divisors():
    assert [divisors(n) for n in (1, 12, 49)] == [[1], [1, 2, 3, 4, 6, 12], [1, 7, 49]]


@pytest.mark.parametrize("text", ["8 H100", "8x8 B200", "0x8 H100", "axb H100"])
def test_a_cluster_that_is_not_known(text):
    with pytest.raises(ValueError, match="machines x devices"):
        cluster_named(text)


def test_the_command(tmp_path, capsys):
    file = tmp_path / "model.py"
    file.write_text(
        "import minipaddle as paddle\n"
        "def net():\n"
        "    return paddle.text.GPT(4000, 1024, layers=4, heads=8, context=512)\n"
        "number = 3\n"
    )
    given = ["plan", f"{file}:net", "--batch", "64", "--sample", "512:int64", "--model", "1"]
    path = tmp_path / "map.svg"
    assert main([*given, "--cluster", "1x8 H100", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("plan      sharding 8")
    assert str(path) in out
    assert "hatch" not in out
    assert path.read_text().startswith("<?xml")
    assert main([*given, "--cluster", "8 cats"]) == 2
    assert capsys.readouterr().err.startswith("error: the cluster '8 cats'")
    given[1] = f"{file}:number"
    assert main([*given, "--cluster", "1x8 H100"]) == 2
    assert "expected a layer" in capsys.readouterr().err
