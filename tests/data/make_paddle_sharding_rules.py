"""Write `sharding_rules.json`: how Paddle's operators propagate the sharding of their tensors.

The tests compare MiniPaddle's sharding rules with this file, so they need no Paddle. Run it again
only for another Paddle version, with an interpreter that has `paddlepaddle` (the committed file
comes from 3.3.1, the CPU package, on Linux and CPython 3.11; no ranks are needed):

    python tests/data/make_paddle_sharding_rules.py

The questions are random, drawn from a fixed seed by the lines of `paddle_sharding_operators.py`.
The file holds
    rules      every name in Paddle's table of rules
    messages   what Paddle said where it refused, and how often
    forward    cases: the sharding of the inputs is given
    backward   cases: the sharding of the outputs is given, the inputs are whole

A case is [name, letters, mesh, tensors, attributes, kind, answer]:
    letters    one letter for each dimension, "mk,kn->mn". A capital may not be sharded
               (the axis of softmax), 1 is a dimension of size 1 that is broadcast. These are
               MiniPaddle's reading of the operator, not Paddle's answer
    mesh       the shape of the mesh of processes
    tensors    [shape, mapping] of each tensor that is given. A mapping says, for each dimension,
               which axis of the mesh cuts it: -1 none, a list several
    attributes in the order in which Paddle's rule takes them
    kind       "several": some dimension is cut by several axes
               "conflict": two tensors cut one letter by different axes, or one axis cuts two
               letters that may be cut: there may be more than one right answer
               "uneven": some dimension is not a multiple of the axis that cuts it
               "plain": none of these
    answer     a number: Paddle refused with that message. Otherwise [inputs, outputs], what
               Paddle wants: for each tensor [mapping, partial], where partial has [axis, how]
               for each axis of the mesh over whose ranks it must still be reduced: "SUM", "MAX"
"""

import json
import random
import re
import warnings
from collections import Counter
from pathlib import Path

from paddle_sharding_operators import OPERATORS, Question

warnings.filterwarnings("ignore")

import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402
from paddle.base.libpaddle import contains_spmd_rule, get_phi_spmd_rule  # noqa: E402
from paddle.distributed.auto_parallel.static.dist_attribute import (  # noqa: E402
    DistTensorSpec,
    TensorDistAttr,
)

TARGET = Path(__file__).with_name("sharding_rules.json")
MESHES = [[2], [3], [4], [8], [2, 2], [2, 3], [3, 2], [2, 4], [4, 2], [2, 2], [2, 3], [2, 2, 2]]
MORE_NAMES = """
    c_softmax_with_multi_label_cross_entropy default_ default_data_parallel moe_combine
    moe_gate_dispatch replicated
"""
"""Names in Paddle's table of rules that are not its operators."""
CO_SHARDED = 0.04
"""The share of questions in which two axes of the mesh may cut one dimension."""


def main() -> None:
    chance, messages = random.Random(20), Counter()
    found = {"forward": {}, "backward": {}}
    for name, (draw, times, backwards) in OPERATORS.items():
        for direction, count in (("forward", times), ("backward", backwards)):
            for _ in range(count):
                case = ask(chance, name, draw(chance), direction, messages)
                found[direction][json.dumps(case[:5])] = case
    refusals = list(messages)
    for cases in found.values():
        for case in cases.values():
            if isinstance(case[-1], str):
                case[-1] = refusals.index(case[-1])
    write({key: list(cases.values()) for key, cases in found.items()}, messages)


def ask(chance, name: str, question: Question, direction: str, messages: Counter) -> list:
    """One case: random mappings for the tensors on one side of `question`, and Paddle's answer."""
    shape = chance.choice(MESHES)
    mesh = dist.ProcessMesh(shape=shape, process_ids=list(range(size(shape))))
    several = chance.random() < CO_SHARDED
    inputs, outputs = question.shapes
    given = inputs if direction == "forward" else outputs
    side = question.letters.split("->")[direction == "backward"].split(",")
    mappings = [random_mapping(chance, x, len(shape), several) for x in given]
    answer = infer(name, question, direction, mesh, mappings)
    if isinstance(answer, str):
        messages[answer] += 1
    return [
        name,
        question.letters,
        shape,
        [list(pair) for pair in zip(given, mappings, strict=True)],
        question.attributes,
        kind(side, given, mappings, shape),
        answer,
    ]


def size(shape: list[int]) -> int:
    return shape[0] * size(shape[1:]) if shape else 1


def random_mapping(chance, shape: list[int], axes: int, several: bool) -> list:
    """Each axis of the mesh cuts some dimension longer than 1, or none."""
    mapping = [[] for _ in shape]
    for axis in chance.sample(range(axes), axes):
        free = [d for d, n in enumerate(shape) if n > 1 and (several or not mapping[d])]
        if free and chance.random() < 0.65:
            mapping[chance.choice(free)].append(axis)
    return [simple(axes) for axes in mapping]


def simple(axes: list[int]) -> int | list[int]:
    return -1 if not axes else axes[0] if len(axes) == 1 else axes


def kind(letters: list[str], shapes: list, mappings: list[list], mesh: list[int]) -> str:
    """What is particular about the mappings; the docstring of this file has the words."""
    pairs = [
        (letter, length, axis)
        for word, shape, mapping in zip(letters, shapes, mappings, strict=True)
        for letter, length, axis in zip(word, shape, mapping, strict=True)
        if axis != -1
    ]
    if any(isinstance(axis, list) for _, _, axis in pairs):
        return "several"
    cuts = {(letter, axis) for letter, _, axis in pairs if letter.islower()}
    if len(cuts) > min(len({x for x, _ in cuts}), len({axis for _, axis in cuts})):
        return "conflict"
    return "uneven" if any(length % mesh[axis] for _, length, axis in pairs) else "plain"


def infer(name: str, question: Question, direction: str, mesh, mappings: list[list]):
    """[mappings of inputs, mappings of outputs] as Paddle infers them, or its refusal."""
    inputs, outputs = question.shapes
    if direction == "forward":
        tensors = arranged(specs(mesh, inputs, mappings), question.lists)
    else:
        blank = [[-1] * len(shape) for shape in inputs]
        tensors = arranged(specs(mesh, inputs, blank), question.lists)
        results = specs(mesh, outputs, mappings)
        tensors += [results] if question.list_result else results
    rule = get_phi_spmd_rule(name)
    call = rule.infer_forward if direction == "forward" else rule.infer_backward
    try:
        found = call(*tensors, *map(native, question.attributes))
    except (RuntimeError, ValueError, NotImplementedError, IndexError) as error:
        return plain(str(error))
    return [[described(each) for each in flat(side)] for side in found]


def native(attribute):
    """The attribute, or the dtype that it names."""
    named = isinstance(attribute, str) and attribute.startswith("paddle.")
    return getattr(paddle, attribute[len("paddle.") :]) if named else attribute


def specs(mesh, shapes: list[list[int]], mappings: list[list]) -> list:
    made = []
    for shape, mapping in zip(shapes, mappings, strict=True):
        attributes = TensorDistAttr()
        attributes.process_mesh = mesh
        attributes.multi_dims_mapping = [
            axes if isinstance(axes, list) else [axes][: axes + 1] for axes in mapping
        ]
        made.append(DistTensorSpec(shape, attributes))
    return made


def arranged(tensors: list, lists: str) -> list:
    """The tensors as the rule takes them: "all" in one list, the "middle" ones, or one by one."""
    if lists == "all":
        return [tensors]
    return [tensors[0], tensors[1:-1], tensors[-1]] if lists == "middle" else tensors


def flat(answers: list) -> list:
    return [each for x in answers for each in (x if isinstance(x, list) else [x])]


def described(found: TensorDistAttr) -> list:
    mapping = [simple(axes) for axes in found.multi_dims_mapping]
    partial = re.findall(r"Partial\(dims:(\d+), (\w+)\)", str(found))
    assert {int(axis) for axis, _ in partial} == found._partial_dims(), str(found)
    return [mapping, sorted([int(axis), how] for axis, how in partial)]


def plain(message: str) -> str:
    """The first line of Paddle's message, without letters, numbers and the line of its source."""
    line = message.strip().splitlines()[0]
    line = re.sub(r"\[[^]]*\]", "[…]", re.sub(r" ?\(at /paddle.*", "", line))
    return re.sub(r"[\d-]+$", "", line).strip()


def write(found: dict[str, list], messages: Counter) -> None:
    def lines(cases: list) -> str:
        return ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)

    names = {*OPERATORS, *dir(paddle._C_ops), *MORE_NAMES.split()}
    rules = " ".join(sorted(name for name in names if contains_spmd_rule(name)))
    head = {"paddle_version": paddle.__version__, "rules": rules, "messages": dict(messages)}
    parts = [f"{json.dumps(key)}: [\n{lines(cases)}\n]" for key, cases in found.items()]
    text = json.dumps(head, indent=0, ensure_ascii=False)[:-2] + ",\n" + ",\n".join(parts) + "\n}\n"
    json.loads(text)
    TARGET.write_text(text, encoding="utf-8")
    print({key: len(cases) for key, cases in found.items()}, dict(messages), len(text))


if __name__ == "__main__":
    main()
