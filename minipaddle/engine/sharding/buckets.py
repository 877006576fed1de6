"""Which collectives travel together: one bucket is one message.

The size of a bucket has one name, `bucket_mb`: its megabytes at most.
"""

from __future__ import annotations

from ..core.slots import slot

MB = 1 << 20
BUCKET_MB = 25
"""The megabytes of a bucket where nobody says another number."""
LAST_MB = 1
"""About the megabytes of the last bucket: while it travels, nothing is left to compute."""


@slot("async_collectives.assign_buckets")
def assign_buckets(
    sizes: list[int], kinds: list, limits: list[float], last: int
) -> list[list[int]]:
    """The numbers of the gradients in each bucket; `sizes` are their bytes in the order in which
    they are computed.

    A bucket has gradients of one kind, and takes another one if all together stay within its
    limit. The last gradients have a bucket of their own: as many as stay together within `last`
    and within their limits, but at least one.
    """
    groups, first = [], start_of_last(sizes, limits, last)
    for k, size in enumerate(sizes):
        group = groups[-1] if groups else []
        alike = group and kinds[group[0]] == kinds[k] and k != first
        if alike and sum(sizes[j] for j in group) + size <= limits[k]:
            group.append(k)
        else:
            groups.append([k])
    return groups


def start_of_last(sizes: list[int], limits: list[float], last: int) -> int:
    """The number of the first gradient of the last bucket."""
    total, first = 0, len(sizes) - 1
    for k in reversed(range(len(sizes))):
        total += sizes[k]
        if total > min(last, limits[k]):
            break
        first = k
    return first
