"""Cut layers into the parts of a model: by number, by number of a class, or by cost."""

from ...engine.core.errors import value_error
from ...engine.core.slots import slot


def cut_uniformly(layers: int, parts: int) -> list[int]:
    """Bounds of parts with equally many layers; the last parts take the remainder.

    >>> from minipaddle.distributed.pipeline.segments import cut_uniformly
    >>> cut_uniformly(7, 3)
    [0, 2, 4, 7]
    """
    each, left = divmod(layers, parts)
    return [k * each + max(0, k - (parts - left)) for k in range(parts + 1)]


def cut_by_class(counted: list[bool], parts: int) -> list[int]:
    """Bounds of parts with equally many layers that count; others join the layer before them.

    >>> from minipaddle.distributed.pipeline.segments import cut_by_class
    >>> cut_by_class([False, True, True, False, True, True], 2)
    [0, 3, 6]
    """
    each, bounds, count = sum(counted) // parts, [0], 0
    for k, one in enumerate(counted):
        count += one
        if count == each and len(bounds) < parts:
            bounds.append(k + 1)
            count = 0
    return [*bounds, len(counted)]


@slot("pipeline.cut_by_cost")
def cut_by_cost(costs: list[float], parts: int) -> list[int]:
    """Bounds of parts, each a run of layers, so that the slowest part is as fast as possible.

    `best[k]` is the least cost of the slowest part for the first k layers; each part has a
    layer. Source: Linear partition, Skiena, "The Algorithm Design Manual", section 10.7.

    >>> from minipaddle.distributed.pipeline.segments import cut_by_cost
    >>> cut_by_cost([4.0, 1.0, 1.0, 1.0, 1.0, 4.0], 3)
    [0, 1, 5, 6]
    """
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    n = len(costs)
    best = [(sums[k], (0, k)) for k in range(n + 1)]
    for part in range(2, parts + 1):
        best = [
            min(
                (
                    (max(best[j][0], sums[k] - sums[j]), (*best[j][1], k))
                    for j in range(part - 1, k)
                ),
                default=(float("inf"), ()),
            )
            for k in range(n + 1)
        ]
    return [*best[n][1]]


def cut_layers(names: list[str], parts: int, method="uniform") -> list[int]:
    """The bounds of the parts of a list of layers with the class names `names`.

    method: "uniform"; "layer:Name" counts the layers of a class (a part of its name is enough); a
        list of numbers, one for each layer, are costs, whose largest sum in a part is the least
    Raises ValueError for fewer layers than parts.
    """
    if len(names) < parts:
        raise value_error(f"{len(names)} layers in {parts} parts", expected="a layer in each part")
    if isinstance(method, (list, tuple)):
        if len(method) != len(names) or not all(cost >= 0 for cost in method):
            raise value_error(
                f"seg_method={method!r:.60} for {len(names)} layers",
                expected="a cost for each layer, 0 or more",
            )
        return cut_by_cost([*map(float, method)], parts)
    if method == "uniform":
        return cut_uniformly(len(names), parts)
    start, _, class_name = str(method).partition(":")
    if start != "layer" or not class_name:
        raise value_error(
            f"seg_method={method!r}", expected='"uniform", "layer:Linear", or a list of costs'
        )
    counted = [class_name.lower() in name.lower() for name in names]
    if not any(counted) or sum(counted) % parts:
        raise value_error(
            f"seg_method={method!r}: {sum(counted)} of {len(names)} layers are of that class",
            expected=f"a multiple of {parts}, the number of parts",
        )
    return cut_by_class(counted, parts)
