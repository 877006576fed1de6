"""A cluster: its devices, and the links inside of and between machines."""

import re
from collections import Counter
from math import ceil, inf
from typing import NamedTuple

from ...engine.core.errors import value_error

__all__ = [
    "A100", "A100_80", "ETHERNET", "H100", "HDR", "INFINIBAND", "NDR", "NVLINK", "NVLINK3",
    "NVLINK4", "PCIE", "Cluster", "Device", "Link", "cluster_named",
]  # fmt: skip


class Link(NamedTuple):
    """`bandwidth` bytes a second each way at the same time, `latency` seconds for a message."""

    bandwidth: float
    latency: float

    def seconds(self, nbytes: float) -> float:
        """The time of a message: the latency, then its bytes (the α-β model of Hockney 1994)."""
        return self.latency + nbytes / self.bandwidth


class Device(NamedTuple):
    """`operations` in a second in matrix products, `bandwidth` bytes a second to its memory.

    It has `memory` bytes, and `units` that compute tiles of a product. `products` is the
    share of its operations that the best measured product reaches, `attention` the share
    that fused attention reaches; a kernel starts `launch` seconds after the one before has ended. A
    `whole` training step reaches this share of the speed that its kernels would have alone.
    """

    operations: float
    bandwidth: float
    memory: float = inf
    units: int = 1
    products: float = 1.0
    attention: float = 1.0
    launch: float = 0.0
    whole: float = 1.0

    def seconds(self, operations: float, nbytes: float) -> float:
        """The least time of a kernel: it computes, or waits for memory (the roofline of Williams et
        al. 2009).
        """
        return max(operations / self.operations, nbytes / self.bandwidth)

    def product(self, batch: int, rows: int, columns: int, depth: int, width: int = 2) -> float:
        """The time of a product in half precision: the units compute its tiles in waves, one each,
        and the last wave is not full; then a unit writes its tile, `width` bytes an element. The
        result is for the best size of a tile.

        >>> from minipaddle.distributed.simulator import Device
        >>> chip = Device(4e12, 1e12, units=4)
        >>> [round(1e6 * chip.product(1, 256, 128 * n, 1000)) for n in (2, 4, 5)]
        [66, 66, 132]
        """
        if self.units == 1:  # a device with unknown units
            return 2 * batch * rows * columns * depth / (self.operations * self.products)
        unit = self.operations * self.products / self.units
        times = []
        for high, wide in TILES:
            tiles = batch * ceil(rows / high) * ceil(columns / wide)
            computing = 2 * high * wide * depth / unit
            writing = width * high * wide * self.units / self.bandwidth
            times.append(ceil(tiles / self.units) * (computing + writing))
        return min(times)


TILES = ((128, 256), (256, 128))
"""Rows and columns of the most efficient tiles of a GPU's libraries (NVIDIA, "Matrix
Multiplication Background User's Guide")."""

WHOLE = 0.94
"""The share of the speed of its kernels that a whole step reaches: the one fitted constant, to the
four runs on A100 of Korthikanti et al. (2022)."""
H100 = Device(989.4e12, 3.35e12, 80e9, 132, 0.763, attention=0.35, launch=5e-6, whole=WHOLE)
"""NVIDIA H100 SXM with 80 GB by its data sheet, bfloat16. Its chip holds 755e12 operations in
products (Bekman, "Machine Learning Engineering": the maximum sustainable matmul FLOPS, on an H200),
FlashAttention 2 has 35 % (Shah et al., "FlashAttention-3", 2024)."""
A100_80 = Device(312e12, 2.039e12, 80e9, 108, 0.859, attention=0.5, launch=5e-6, whole=WHOLE)
"""NVIDIA A100 SXM with 80 GB by its data sheet, bfloat16; 267.9e12 in the best product (Bekman);
FlashAttention 2 has 50 to 73 % (Dao, 2023)."""
A100 = Device(156e12, 1.55e12)
"""NVIDIA A100 with 40 GB by its data sheet: products of float32 in TF32, HBM2."""
CORE = Device(100e9, 8e9, 4e9, launch=5e-6)
"""A core of a server's processor: 16 products of float32 with additions in each of 3e9 cycles
(AVX2), and its share, a 24th, of eight channels of DDR4-3200 and of 96 GB."""
PCIE = Link(10e9, 10e-6)
"""PCIe 3.0 with 16 lanes: 15.75 GB/s by its specification, about 10 in a collective."""
NVLINK = Link(200e9, 5e-6)
"""NVLink of the third generation: 300 GB/s each way by its specification."""
NVLINK4 = Link(450e9, 5e-6)
"""NVLink of the fourth generation: 900 GB/s, half of it each way, by its specification."""
NVLINK3 = Link(300e9, 5e-6)
"""NVLink of the third generation: 600 GB/s, half of it each way, by its specification."""
NDR = Link(8 * 50e9, 5e-6)
"""A machine's eight adapters of InfiniBand NDR, 400 Gbit/s each, by their specification."""
HDR = Link(8 * 25e9, 5e-6)
"""A machine's eight adapters of InfiniBand HDR, 200 Gbit/s each, by their specification."""
INFINIBAND = Link(20e9, 5e-6)
"""InfiniBand HDR: 200 Gbit/s, 20 GB/s in a collective."""
ETHERNET = Link(1.1e9, 30e-6)
"""Ethernet of 10 Gbit/s."""

SHARED = Link(4e9, 20e-6)
"""Memory that processes share: a write and a read of each message."""


class Cluster(NamedTuple):
    """`nodes` machines of `devices` each; device r is in machine r // devices.

    Each device has a link `inside` of its own; all devices of a machine share one link `between`.
    """

    nodes: int
    devices: int
    inside: Link
    between: Link = ETHERNET

    @property
    def size(self) -> int:
        """The number of all devices."""
        return self.nodes * self.devices

    def node(self, device: int) -> int:
        """The machine that a device is in."""
        return device // self.devices

    def seconds(self, pairs, nbytes: float) -> float:
        """The time of messages of this size in bytes between all `pairs` at once.

        Messages on a link share its bandwidth. Links work both ways at the same time.
        """
        return self.seconds_of(self.loads(pairs), nbytes)

    def seconds_of(self, loads: tuple[int, int], nbytes: float) -> float:
        """The same, for the numbers of messages on the fullest links."""
        links = zip((self.inside, self.between), loads)
        return max((link.seconds(n * nbytes) for link, n in links if n), default=0.0)

    def loads(self, pairs) -> tuple[int, int]:
        """The messages on the fullest link inside a machine, and between machines."""
        inside, between = Counter(), Counter()
        for source, target in pairs:
            a, b = self.node(source), self.node(target)
            if a != b:
                between.update([("out", a), ("in", b)])
            else:
                inside.update([("out", source), ("in", target)])
        return max(inside.values(), default=0), max(between.values(), default=0)


MACHINES = {
    "H100": (H100, NVLINK4, NDR),
    "A100": (A100_80, NVLINK3, HDR),
    "CPU": (CORE, SHARED, ETHERNET),
}
"""Devices by name: their data sheet, the links in a machine, and between machines."""


def cluster_named(name: str) -> tuple[Device, Cluster]:
    """The device and the cluster of a text as `8x8 H100`: machines x devices, then a name of
    `MACHINES`. ValueError for another text.

    >>> from minipaddle.distributed.simulator import cluster_named
    >>> device, cluster = cluster_named("576x8 H100")
    >>> cluster.size, f"{device.memory / 1e9:.0f} GB"
    (4608, '80 GB')
    """
    match = re.fullmatch(r"\s*(\d+)\s*[x×*]\s*(\d+)\s+(\w+)\s*", name)
    if match is None or match[3] not in MACHINES or not int(match[1]) * int(match[2]):
        raise value_error(
            f"the cluster {name!r}",
            expected=f"machines x devices and a name, one of {', '.join(MACHINES)}",
            hint='"8x8 H100"',
        )
    device, inside, between = MACHINES[match[3]]
    return device, Cluster(int(match[1]), int(match[2]), inside, between)
