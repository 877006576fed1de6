"""The index: each **term** of the chapters, with the chapter and the section that explain it.

A term is what a chapter sets in bold where it explains it. Its place gets an anchor when the
chapter is read, and an entry by which the search finds it first; the page `terms`, which is read
after the chapters, lists the places.
"""

import re
import tomllib
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

PAGE = "terms"
GLOSSARY = tomllib.loads(Path(__file__).with_name("glossary.toml").read_text("utf-8"))
"""Words of the engine: word -> (what it means, the file that is about it)."""
TEXT = "\n".join([
    "# Glossary and index", "",
    "The words that code, chapters and messages share, and the file of each. Below them, the",
    "places where a chapter explains a word: it sets it in bold there.", "",
    "| word | meaning | file |", "|---|---|---|",
    *(f"| {word} | {meaning} | `{file}` |" for word, (meaning, file) in GLOSSARY.items()), "",
])  # fmt: skip
TERM = re.compile(r"[^\W\d_][\w'’–-]*( [\w'’–-]+){0,4}")  # and not "An honest limit."


class Place(NamedTuple):
    """Where a chapter explains a term."""

    document: str
    anchor: str
    chapter: str
    section: str


class Terms(SphinxTransform):
    """Gives terms their anchors, and fills the page that lists them."""

    default_priority = 500  # before Sphinx collects the sections

    def apply(self):
        known = self.env.__dict__.setdefault("terms", {})  # key -> (term, places)
        if self.env.docname[0].isdigit():
            collect(self.document, self.env.docname, known)
        elif self.env.docname == PAGE:
            self.document.next_node(nodes.section).extend(letters(known))


def collect(document, docname: str, known: dict) -> None:
    """Note the first place of each term of a chapter."""
    (chapter, *_), seen = titles(document), set()
    for strong in document.findall(nodes.strong):
        term = strong.astext()
        key = term.lower().removesuffix("s")
        if TERM.fullmatch(term) and key not in seen:
            seen.add(key)
            anchor = f"term-{nodes.make_id(term)}"
            strong["ids"].append(anchor)
            first = "" if key in known else "main"  # what the search lists first
            strong.parent.insert(0, addnodes.index(entries=[("single", term, anchor, first, None)]))
            section = titles(strong)[-1]
            place = Place(docname, anchor, chapter, "" if section == chapter else section)
            known.setdefault(key, (term, []))[1].append(place)


def titles(node) -> list[str]:
    """The titles of the sections around a node (in a document: of its first), outermost first."""
    found = []
    node = node.next_node(nodes.section) if isinstance(node, nodes.document) else node
    while node is not None:
        if isinstance(node, nodes.section):
            found.append(node.next_node(nodes.title).astext())
        node = node.parent
    return found[::-1]


def letters(known: dict):
    """A section for each letter."""
    entries = sorted(known.values(), key=lambda entry: entry[0].lower())
    for letter, some in groupby(entries, key=lambda entry: entry[0][0].upper()):
        section = nodes.section(ids=[f"letter-{letter.lower()}"])
        section += nodes.title("", letter)
        items = nodes.bullet_list(classes=["terms"])
        for term, places in some:
            line = nodes.paragraph("", "", nodes.strong("", term))
            for place in places:
                line += [nodes.Text(" · "), link(place)]
            items += nodes.list_item("", line)
        section += items
        yield section


def link(place: Place):
    """The way to a place, named by its chapter and section."""
    said = " › ".join(filter(None, [place.chapter, place.section]))
    return nodes.reference("", said, internal=True, refuri=f"{place.document}.html#{place.anchor}")
