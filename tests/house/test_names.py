"""Names: the field's words, one module of each name in the engine, all public names in place."""

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from operator import attrgetter
from pathlib import Path

import minipaddle as paddle

from .test_layers import PACKAGE, sources

ROOT = PACKAGE.parent
PUBLIC = (ROOT / "tests/data/public_names.txt").read_text().split()

FORMER = {
    "Promise": "SymbolicArray",
    "MISSED": "CACHE_MISS",
    "Unsure": "MaybeUndefined",
    "borrow": "lift",
    "came_to": "count_call",
    "give_back": "restore",
    "memory_of_results": "result_aliasing",
    "put_off": "sink_into_consumer",
    "retold": "in_user_lines",
    "rounds_back": "reverse_iterations",
    "unwatched": "run_in_background",
}
"""Identifiers that may not come back, and what is said instead."""

RIDDLES = {
    r"can not": "cannot",
    r"[Ww]hoever": "the caller, the thread that …",
    r"by chance": "at random",
    r"how manieth": "which (the number of)",
    r"[Ss]hall": "must, should, will",
    r"[Ll]ast but one": "second to last",
    r"for granted": "assume",
    r"held against": "compared with",
    r"function around": "enclosing function",
    r"stands? behind": "stands after, follows",
    r"[Nn]obody's": "of no …",
    r"[Ww]ho (?:finds|gets|leads)": "the caller, the record that …",
}
"""Phrases that make a reader stumble, and what to write."""

UNNAMED = r"[Ss]o (?:many|much|few)"
"""A number without a name, in the package: its docstrings name the parameter instead."""


def identifiers(text: str) -> Counter:
    """The names in Python code, without those in strings and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.NAME)


def test_former_names_stay_away():
    found = [
        f"{name}: {word}; say {FORMER[word]}"
        for name, text in sources(PACKAGE)
        for word in identifiers(text).keys() & FORMER.keys()
    ]
    assert not found, "\n".join(found)


def prose() -> list[Path]:
    """The files that people read: code, tests, chapters, exercises, pages."""
    folders = ["book", "exercises/checks", "exercises/solutions", "tests"]
    folders = [PACKAGE, *(ROOT / name for name in folders)]
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    found += ROOT.glob("*.md")
    texts = [path for path in found if path.suffix in (".py", ".md", ".toml", ".ipynb")]
    return [path for path in texts if path != Path(__file__)]


def lines_of(path: Path) -> list[str]:
    """The lines of a file; of a notebook those of its cells, not of their outputs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text.splitlines()


def test_phrases_stay_plain():
    pattern = re.compile(rf"\b({'|'.join(RIDDLES)})\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in prose()
        if ".ipynb_checkpoints" not in path.parts
        for number, line in enumerate(lines_of(path), 1)
        for match in pattern.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_numbers_have_names():
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in sources(PACKAGE)
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(UNNAMED, line)
    ]
    assert not found, "\n".join(found)


def test_docstrings_begin_with_a_noun_or_a_verb():
    """No "What stands for a record": "The replacement of a record"."""
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in sources(PACKAGE)
        for number, line in enumerate(text.splitlines(), 1)
        if '"""What ' in line
    ]
    assert not found, "\n".join(found)


IRREGULAR = {
    "begun", "bent", "bound", "bought", "broken", "built", "caught", "chosen", "done", "drawn",
    "fed", "found", "given", "gone", "grown", "held", "hidden", "kept", "known", "laid", "left",
    "lost", "made", "met", "remade", "rewritten", "said", "seen", "sent", "shown", "shrunk",
    "spent", "sung", "taken", "taught", "thought", "told", "understood", "unknown", "unwritten",
    "won", "worn", "woven", "written",
}  # fmt: skip
NO_PARTICIPLES = {"embed", "exceed", "feed", "need", "proceed", "seed", "speed"}
PARTICIPLES = {
    "awaited": "workers that others wait for: a taught slot, and its word in errors",
    "bound": "a noun: the lower bound of an arena",
    "bucketed": "public and in chapter 9: a loader whose batches are bucketed",
    "buffered": "Paddle's, in paddle.reader",
    "chosen": "a taught slot: the recomputations that are chosen",
    "fused_allreduce_gradients": "Paddle's, of fleet",
    "joined": "taught with the index maps of a nest",
    "joined_mean": "public in chapter 16: the mean over joined batches",
    "loaded_input": "taught: the input that a load reads",
    "made_by": "reads as a question: made_by(x)",
    "merged": "another nest, as Python's sorted gives another list",
    "named": "another spec, as sorted",
    "named_buffers": "Paddle's, of layers",
    "named_children": "Paddle's, of layers",
    "named_parameters": "Paddle's, of layers",
    "named_sublayers": "Paddle's, of layers",
    "needed": "taught with the cut: the records that are needed",
    "needed_later": "a taught slot of the rows of a nest",
    "optimized": "another program, as sorted; in all chapters of part III",
    "placed": "a taught slot: the offsets of buffers",
    "planned": "the plan of an optimized program",
    "pruned": "another program, as sorted",
    "quantized_pooling": "a pass, which programs show by name",
    "remade": "a taught slot: the records that make a value again",
    "required_buckets": "taught with the buckets",
    "rewritten": "another program, as sorted",
    "saved_tensor": "Paddle's, of PyLayerContext",
    "sorted": "groups in order, as Python's",
    "switched": "a decorator, as functools.cached_property",
    "undefined": "a converter: it has the name of the construct",
    "unsupported_error": "makes an error, as value_error does",
}
"""Functions that begin with a participle, and why; others begin with a verb.

Free are Paddle's names, properties, predicates (`-> bool`), operators, kernels and passes: programs
show these by name.
"""

FREE = r"property|wraps|elementwise|contraction|reduction|opaque|Control|kernel|program_pass"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """All functions but operators, kernels, passes, properties and predicates."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            yes_or_no = node.returns is not None and ast.unparse(node.returns) == "bool"
            if not re.search(rf"\b\w*({FREE})\b", decorators) and not yes_or_no:
                yield node


def is_participle(name: str) -> bool:
    word = name.strip("_").partition("_")[0]
    ends = word.endswith("ed") and len(word) > 3 and word not in NO_PARTICIPLES
    return ends or word in IRREGULAR


def test_functions_begin_with_a_verb():
    free = {name.rpartition(".")[2] for name in PUBLIC} | PARTICIPLES.keys()
    for file in ("paddle_signatures.json", "distributed_signatures.json"):
        signatures = json.loads((ROOT / "tests/data" / file).read_text())["signatures"]
        free |= {name.rpartition(".")[2] for name in signatures}
    begun = [
        f"{name}:{node.lineno}: {node.name}"
        for name, text in sources(PACKAGE)
        for node in functions(ast.parse(text))
        if is_participle(node.name) and node.name not in free
    ]
    assert not begun, "\n".join(begun)


VAGUE = {
    "found": "what it holds: gradients, states, entry, names",
    "given": "whose it is: options, inputs, arguments",
    "made": "what it is: executable, outputs, library",
}
"""Names that no variable of a function has, and what a name says instead; fields may have them."""


def test_variables_say_what_they_hold():
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    vague = {
        f"{name}:{node.lineno}: {node.id}; say {VAGUE[node.id]}"
        for name, text in sources(PACKAGE)
        for function in ast.walk(ast.parse(text))
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE
    }
    assert not vague, "\n".join(sorted(vague))


TWICE = {"Bilinear", "LRScheduler", "Model", "Normal", "Pad", "Program", "Sampler", "SpectralNorm"}
TWICE |= {"Tensor", "Uniform"}
"""Classes whose name Paddle gives twice, or Paddle and we."""


def test_a_class_has_a_name_of_its_own():
    classes = Counter(
        node.name
        for _, text in sources(PACKAGE)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, n in classes.items() if n > 1} <= TWICE


def test_modules_of_the_engine_differ_in_name():
    names = Counter(
        Path(name).stem for name, _ in sources(PACKAGE / "engine") if "__init__" not in name
    )
    assert not [name for name, n in names.items() if n > 1]


def test_public_names_stay():
    """Recorded before the engine had a folder of its own; names may be added, none may go."""
    gone = []
    for name in PUBLIC:
        try:
            attrgetter(name.partition(".")[2])(paddle)
        except AttributeError as error:
            gone.append(str(error))
    assert not gone


def module_of(name: str) -> str:
    """The dotted name of a file below minipaddle/."""
    return ".".join(["minipaddle", *Path(name).with_suffix("").parts]).removesuffix(".__init__")


def imported(module: str, is_package: bool, text: str, modules) -> set[str]:
    """The modules that a file imports, in functions and for type checkers too."""
    home = module.split(".") if is_package else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            base = ".".join([*base, *filter(None, [node.module])])
            found |= {
                f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in node.names
            }
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return found & modules - {module}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle of imports, if there is one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_two_files_import_each_other():
    texts = {
        module_of(name): (name.endswith("__init__.py"), text) for name, text in sources(PACKAGE)
    }
    graph = {name: imported(name, *each, texts.keys()) for name, each in texts.items()}
    assert not circle(graph)


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"a"}})) == {"a", "b"}
