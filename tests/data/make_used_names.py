"""Writes used_names.json: the names of Paddle that public programs use, and in how many of them.

    python tests/data/make_used_names.py FOLDER [FOLDER...]

Each folder holds the sources of one repository; run it with the Paddle that
`minipaddle.__version__` names, which says whether a name is still there. Only syntax is read.
"""

import ast
import inspect
import json
import sys
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path

import paddle


def aliases(tree) -> dict:
    """What a file calls Paddle's things: {"F": "paddle.nn.functional"}."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.partition(".")[0] == "paddle":
                    found[a.asname or "paddle"] = a.name if a.asname else "paddle"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = node.names if node.module.partition(".")[0] == "paddle" else ()
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in names}
    return {alias: name for alias, name in found.items() if alias != "*"}


def dotted(node, known: dict) -> str | None:
    """`paddle.nn.Linear` of `nn.Linear`; None for what does not begin with Paddle."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in known:
        return ".".join([known[node.id], *reversed(parts)])
    return None


def used_in(tree) -> dict[str, set]:
    """{name: keywords it is called with}."""
    known, found, inner = aliases(tree), defaultdict(set), set()
    for name in known.values():
        found[name]
    for node in ast.walk(tree) if known else ():
        called = isinstance(node, ast.Call)
        head = node.func if called else node
        if not isinstance(head, ast.Attribute | ast.Name) or (not called and id(head) in inner):
            continue
        name = dotted(head, known)
        if name is None:
            continue
        found[name] |= {k.arg for k in node.keywords if k.arg} if called else set()
        while isinstance(head, ast.Attribute):
            inner |= {id(head), id(head.value)}
            head = head.value
    return found


def used_by(folder: Path) -> dict[str, set]:
    """The same, over all files of a repository."""
    found = defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(errors="ignore"))
        except (SyntaxError, ValueError):
            continue
        for name, keywords in used_in(tree).items():
            found[name] |= keywords
    return found


def in_paddle(name: str):
    """What Paddle has by a name; None if nothing."""
    parts, found = name.split("."), paddle
    for k, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                import_module(".".join(parts[:k]))
            except Exception:
                return None
        found = getattr(found, part, None)
    return found


def accepted(name: str, keywords) -> list[str]:
    """Those of the keywords that Paddle's function names."""
    try:
        parameters = inspect.signature(in_paddle(name)).parameters
    except (TypeError, ValueError):
        return []
    return sorted(k for k in keywords if k in parameters)


def main(folders):
    counts, keywords = Counter(), defaultdict(Counter)
    for folder in folders:
        for name, given in used_by(folder).items():
            counts[name] += 1
            keywords[name].update(given)
    kept = [n for n, k in counts.items() if k > 1 and "._" not in n and in_paddle(n) is not None]
    rows = [
        f"{json.dumps(n)}: {json.dumps([counts[n], accepted(n, keywords[n])])}"
        for n in sorted(kept, key=lambda n: (-counts[n], n))
    ]
    head = json.dumps([folder.name for folder in folders])
    text = f'{{"paddle_version": "{paddle.__version__}",\n"repositories": {head},\n"names": {{\n'
    path = Path(__file__).with_name("used_names.json")
    path.write_text(text + ",\n".join(rows) + "\n}}\n")
    print(f"{len(folders)} repositories, {len(rows)} names in two or more: {path}")


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
