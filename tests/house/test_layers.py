"""The house's rules that a machine can hold: imports run one way, files stay short, no pickle.

The checker reads the source of `minipaddle/` and imports nothing, so it also judges a package that
is half written. The last tests give it small trees with known faults.
"""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "minipaddle"

# Each line may import from the lines above it; the names on one line do not know each other.
LAYERS = """
engine/core
engine/ops
engine/ir
engine/eager
engine/sharding
engine/passes
engine/codegen
engine/executors
engine/jit | engine/distributed
core
ops
tensor
ir
eager
passes
codegen
executors
nn | regularizer | geometric | version
distribution
optimizer | io | metric | reader
jit
amp
generation | distributed
quantization | static | vision | text | hapi | tuning | privacy
slim | inference | onnx | export
viz | testing
learn
base | incubate | _C_ops
autograd | callbacks | common_ops_import | device | framework | hub | linalg | utils
serving | as_paddle | _legacy_C_ops
"""
RANK = {
    name.strip(): rank
    for rank, line in enumerate(LAYERS.strip().splitlines())
    for name in line.split("|")
}

# Array operations go through the array module, so that CuPy can stand where NumPy does. These
# files may name numpy, each for the reason given.
NUMPY_ALLOWED = {
    "engine/core/dtype.py": "a dtype is NumPy's object for CuPy's arrays too",
    "engine/core/record.py": "a dtype again",
    "engine/ir/printer.py": "a dtype again",
    "engine/sharding/placements.py": "a grid of ranks is no array of a tensor",
    "engine/jit/to_static.py": "arguments may be NumPy arrays",
    "jit/objects.py": "NumPy's arrays and generators are objects of the user's",
    "jit/reading.py": "`x.numpy()` computes in NumPy's dtypes",
    "jit/snapshot.py": "they are put back as they were",
    "jit/once.py": "its generators are seeded and drawn from",
    "eager/numpy_functions.py": "it replaces functions of NumPy's that are slow",
    "eager/sizes.py": "arrays of sizes that are no numbers yet have no dtype but object",
    "engine/codegen/accumulator.py": "C's dtypes are NumPy's; no array is touched",
    "codegen/random/generator.py": "likewise",
    "engine/codegen/kernel.py": "likewise",
    "engine/codegen/scalar.py": "likewise",
    "codegen/functions/formulas.py": "C's dtypes are NumPy's; no array is touched",
    "codegen/functions/special.py": "coefficients are computed, which become text",
    "engine/codegen/writer.py": "likewise",
    "engine/executors/arrays.py": "what C works on are NumPy's arrays",
    "engine/executors/native.py": "likewise",
    "executors/hot/eager_kernels.py": "likewise",
    "executors/hot/tapes.py": "likewise",
    "optimizer/update.py": "likewise",
    "generation/beams.py": "tokens are chosen on the CPU",
    "generation/decoder.py": "likewise",
    "generation/drafts.py": "likewise",
    "generation/sampling.py": "likewise",
    "generation/scheduler.py": "likewise",
    "text/gpt.py": "likewise",
    "slim/channels.py": "labels of axes are numbers on the CPU",
    "slim/shrink.py": "likewise",
    "slim/filters.py": "filters are ranked on the CPU",
    "slim/supernet.py": "likewise",
    "tuning/measure.py": "likewise",
    "tuning/target.py": "likewise",
    "tuning/tune.py": "chance is drawn on the CPU",
    "inference/model.py": "handles copy from and to NumPy's arrays",
    "inference/predictor.py": "likewise",
    "serving/pictures.py": "pictures come as bytes",
    "serving/protocol.py": "what travels is NumPy arrays on the CPU",
    "serving/replica.py": "likewise",
    "serving/runner.py": "likewise",
    "engine/eager/device.py": "here the array module is chosen",
    "io/buckets.py": "samples are NumPy arrays on the CPU until the batch is whole",
    "io/channel.py": "what travels between processes is NumPy arrays on the CPU",
    "io/collate.py": "samples are NumPy arrays on the CPU until the batch is whole",
    "io/sampler.py": "indices are numbers on the CPU",
    "io/serialization.py": "what a file holds is NumPy arrays on the CPU",
    "metric/__init__.py": "what is gathered over batches is NumPy arrays on the CPU",
    "hapi/model.py": "predictions are handed out as NumPy arrays",
    "learn/blame.py": "difference quotients are taken on the CPU",
    "learn/simulated_device.py": "arrays of NumPy play those of another device",
    "learn/comparison.py": "what readers return is compared on the CPU",
    "learn/variations.py": "likewise",
    "learn/verdict.py": "likewise",
    "testing/exported.py": "what a library of C computes are NumPy's arrays",
    "io/worker.py": "a worker seeds NumPy's global generator",
    "engine/eager/execution.py": "the hot path knows NumPy's arrays by their class",
    "engine/eager/tensor.py": "likewise",
    "engine/eager/convert.py": "Python's lists become NumPy arrays first",
    "engine/eager/values.py": "x.numpy() gives a NumPy array",
    "distributed/simulator/timeline.py": "the clocks of simulated devices are numbers on the CPU",
    "vision/datasets.py": "samples are NumPy arrays on the CPU until the batch is whole",
    "vision/transforms/functional.py": "likewise",
    "vision/transforms/pictures.py": "likewise",
}
ONNX = """
    forms/bits forms/images forms/movement forms/norms forms/places forms/scans formulas
    functions/bits functions/control functions/elementwise functions/images
    functions/integers functions/norms functions/places functions/recurrent
    functions/shapes functions/sizes graph graphs reading rows table weights writer
"""
NUMPY_ALLOWED |= {
    f"onnx/{name}.py": "what a file holds is arrays on the CPU" for name in ONNX.split()
}
LONGEST = 400


def sources(package):
    """(name inside the package, text) of each file."""
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")


def imports(name, text):
    """(line, absolute dotted name) of what a file imports, in functions too; not for type checkers.

    `from a.b import c` gives a.b.c: whether c is a module or a name in a.b, its layer is the same.
    """
    here = ["minipaddle", *name.split("/")[:-1]]
    waiting = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = [*base, *filter(None, [node.module])]
            yield from ((node.lineno, ".".join([*module, a.name])) for a in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, a.value) for a in node.args if isinstance(a, ast.Constant))
        waiting += ast.iter_child_nodes(node)


def layer_of(parts):
    """The layer of a path or dotted name below minipaddle; None for the front door itself."""
    parts = ["/".join(parts[:2]), *parts[2:]] if parts[:1] == ["engine"] else parts
    first = parts[0].removesuffix(".py") if parts else "__init__"
    return first if first in RANK else None


def backward_arrows(package):
    """Each import that leads from a layer to one it must not know, as a sentence."""
    for name, text in sources(package):
        home = layer_of(name.split("/"))
        if name in ("__init__.py", "__main__.py", "engine/__init__.py"):
            continue
        if home is None:
            yield f"{name} belongs to no layer: give {name.split('/')[0]} a line in LAYERS"
            continue
        for line, target in imports(name, text):
            top, *rest = target.split(".")
            goal = layer_of(rest)
            if top != "minipaddle" or goal == home:
                continue
            where = f"{name}:{line} imports {target}"
            if goal is None:
                yield f"{where}, which imports everything: import from the module that defines it"
            elif RANK[goal] >= RANK[home]:
                yield f"{where}, but `{home}` may not know `{goal}`: move the shared part down"


def long_files(package, longest=LONGEST):
    """Files over the cap."""
    for name, text in sources(package):
        lines = text.count("\n")
        if lines > longest:
            yield f"{name} has {lines} lines, {longest} are allowed: which half is its own idea?"


def importers(package, module):
    """{file: line} of the files that import a module from outside."""
    found = {}
    for name, text in sources(package):
        lines = [line for line, what in imports(name, text) if what.split(".")[0] == module]
        found |= {name: min(lines)} if lines else {}
    return found


def format_faults(faults):
    """The faults as one message, or nothing."""
    return "\n".join(["", *faults])


def test_imports_run_one_way():
    faults = list(backward_arrows(PACKAGE))
    assert not faults, format_faults(faults)


def test_no_file_is_too_long():
    faults = list(long_files(PACKAGE))
    assert not faults, format_faults(faults)


def test_numpy_is_named_only_where_it_must_be():
    found = importers(PACKAGE, "numpy")
    faults = [
        f"{name}:{line} imports numpy: take the array module instead, so that CuPy can stand "
        "there, or give the file and its reason to NUMPY_ALLOWED"
        for name, line in found.items()
        if name not in NUMPY_ALLOWED
    ]
    faults += [
        f"NUMPY_ALLOWED still names {name}, which imports no numpy: take it out"
        for name in NUMPY_ALLOWED
        if (PACKAGE / name).exists() and name not in found
    ]
    assert not faults, format_faults(faults)


def test_nothing_pickles():
    faults = [
        f"{name}:{line} imports pickle, which runs whatever a file tells it to: use safetensors "
        "or JSON"
        for name, line in importers(PACKAGE, "pickle").items()
    ]
    assert not faults, format_faults(faults)


# The checker itself, on small trees with known faults


@pytest.fixture
def house(tmp_path):
    """A function that writes {name: text} as a package and gives its folder."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("core/a.py", "import minipaddle.ops"),
        ("core/a.py", "from minipaddle import nn"),
        ("core/a.py", "from minipaddle.ops.conv import conv2d"),
        ("core/a.py", "from .. import ops"),
        ("core/deep/a.py", "from ...ops import conv"),
        ("core/a.py", "def later():\n    from ..ops import conv"),
        ("core/a.py", "if TYPE_CHECKING:\n    pass\nelse:\n    from ..ops import conv"),
        ("core/a.py", "from importlib import import_module\nimport_module('minipaddle.nn')"),
        ("core/a.py", "import minipaddle as paddle"),
        ("core/a.py", "from minipaddle import Tensor"),
        ("ir/a.py", "from ..eager import tape"),
        ("nn/a.py", "from ..jit import to_static"),
        ("attic/a.py", ""),
        ("attic.py", ""),
    ],
)
def test_a_wrong_arrow_is_found(house, name, text):
    (fault,) = backward_arrows(house({name: text}))
    assert fault.startswith(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("__init__.py", "from .viz import draw"),
        ("__main__.py", "from minipaddle import viz"),
        ("core/a.py", "import minipaddle.engine.core.b, os, numpy"),
        ("core/a.py", "from . import b\nfrom .b import c"),
        ("core/__init__.py", "from .a import b"),
        ("viz/a.py", "from ..core import op\nfrom minipaddle.nn.layer import Layer"),
        ("core/a.py", "if TYPE_CHECKING:\n    from ..ops import conv"),
        ("core/a.py", "if typing.TYPE_CHECKING:\n    from ..ops import conv"),
        ("core/a.py", "'from minipaddle import ops'"),
    ],
)
def test_a_right_arrow_passes(house, name, text):
    assert not list(backward_arrows(house({name: text})))


def test_a_long_file_is_found(house):
    (fault,) = long_files(house({"core/a.py": "x = 1\n" * 3, "core/b.py": "x = 1\n" * 2}), 2)
    assert fault.startswith("core/a.py has 3 lines")


def test_an_import_of_numpy_is_found_wherever_it_hides(house):
    texts = ["import numpy as np", "from numpy.linalg import norm", "def f():\n    import numpy"]
    clean = {"core/ok.py": "from .numpy import x\nimport numpyro"}
    tree = house({f"core/{i}.py": text for i, text in enumerate(texts)} | clean)
    assert importers(tree, "numpy") == {"core/0.py": 1, "core/1.py": 1, "core/2.py": 2}


def test_every_name_has_one_place():
    assert len(RANK) == len(LAYERS.replace("|", " ").split()), "a name stands in two lines"


# ---- the map for contributors ----------------------------------------------------------------


def rows_of_the_map() -> list[tuple[list[str], list[str]]]:
    """For each row of CONTRIBUTING's table its folders, and the files to open first."""
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = []
    for line in text.partition("| folder |")[2].splitlines()[2:]:
        if not line.startswith("|"):
            break
        folders, _, first = re.split(r" *\| *", line.strip())[1:4]
        found.append((re.findall(r"`(.+?)`", folders), re.findall(r"`(.+?)`", first)))
    return found


def test_the_map_is_in_the_order_of_the_layers():
    rows = rows_of_the_map()
    ranks = [RANK[folders[0].partition("/")[2]] for folders, _ in rows
             if folders[0].startswith("minipaddle/")]  # fmt: skip
    assert ranks == sorted(ranks)
    assert {f"minipaddle/{n}" for n in RANK if "/" in n} <= {f for row in rows for f in row[0]}


def test_the_map_names_what_is_there():
    for folders, files in rows_of_the_map():
        parent = Path(folders[0]).parent
        paths = [PACKAGE.parent / parent / Path(folder).name for folder in folders]
        assert all(path.is_dir() for path in paths), folders
        for file in files:
            places = [*paths, PACKAGE.parent, paths[0].parent]
            assert any((place / file).is_file() for place in places), (folders, file)
