"""The panes that never change, as HTML: Python, C, the arena, times, ranks, the ruler of passes.

What can be selected is an element with an address (`data-sel`), which `facts.js` reads. `data-mark`
says that it is marked only as what holds a selection; `data-view` names one of two ways to show a
pane.
"""

import re
from collections import Counter
from types import MappingProxyType

from ...engine.passes.buffer_assignment import bytes_text
from ..markup import css, escape, tag
from ..style import count

WORDS = (
    "and as class def elif else for from if in is lambda not or return while with None True False "
    "self const static void float double char int int64_t uint32_t restrict"
)
TOKENS = re.compile(
    rf"(?P<comment>#.*|/\*.*?\*/)|(?P<string>\"[^\"]*\"|'[^']*')|\b(?P<word>{'|'.join(WORDS.split())})\b"
)
HIDDEN = MappingProxyType({"hidden": "hidden"})
PLACED = MappingProxyType({
    "R": "R: whole on each rank", "S": "S0: its shard of dimension 0", "P": "P: a partial sum",
})  # fmt: skip
"""Letters of placements, in words."""

LONGEST = 400
"""Characters of a line of C that are shown."""


def colour(text: str) -> str:
    """A piece of a line, in which comments, strings and words of the language are marked."""
    parts, at = [], 0
    for match in TOKENS.finditer(text):
        parts += (
            escape(text[at : match.start()]),
            tag("span", escape(match[0]), class_=match.lastgroup),
        )
        at = match.end()
    return "".join(parts) + escape(text[at:])


def write_part(name: str, look: str, address: str, *inside: str, **attrs) -> str:
    """An element that can be selected."""
    return tag(name, *inside, class_=look, data_sel=escape(address), tabindex=-1, **attrs)


def write_row(number, text: str, address: str = "", mark: str = "") -> str:
    """A numbered line of code."""
    inside = tag("i", str(number)), text
    if address:
        return write_part("div", "row", address, *inside, data_mark=mark)
    return tag("div", *inside, class_="row")


def write_time(us: float) -> str:
    return f"{us:.1f} µs" if us < 1000 else f"{us / 1000:.2f} ms"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%"


class PaneWriter:
    """Writes the panes of the facts of a step."""

    def __init__(self, facts: dict):
        self.facts, self.kernels, self.tracks = facts, facts["kernels"], facts["tracks"]
        self.spans: dict[tuple, list] = {}  # of a line
        for k, (src, first, _, last, _) in enumerate(facts["spans"]):
            for line in range(first, last + 1):
                self.spans.setdefault((src, line), []).append(k)
        self.first: dict[str, int] = {}  # kernel of a name
        self.hue: dict[int, int] = {}
        for k, kernel in enumerate(self.kernels):
            self.first.setdefault(kernel["name"], k)
            self.hue |= dict.fromkeys(kernel["tracks"], k * 137 % 360)

    def write(self) -> dict:
        """For each pane its HTML and a few words; for C the blocks of lines."""
        panes = {"py": [self.write_python(), ""], "c": self.write_c(), "arena": self.write_arena(),
                 "time": self.write_times(), "ranks": [self.write_ranks(), ""]}  # fmt: skip
        none = "This program has none."
        why = {name: escape(self.facts.get("why", {}).get(name, none)) for name in panes}
        filled = {k: v if v[0] else [tag("p", why[k], class_="why"), ""] for k, v in panes.items()}
        return filled | {"ruler": self.write_ruler(), "rules": self.write_rules()}

    # ---- code --------------------------------------------------------------------------------

    def write_python(self) -> str:
        views = {"yours": (self.write_lines, {}), "converted": (self.write_converted, HIDDEN)}
        sources = range(len(self.facts["src"]))
        return "".join(
            tag("div", *(self.write_source(k, write) for k in sources), data_view=view, **hidden)
            for view, (write, hidden) in views.items()
        )

    def write_source(self, k: int, write) -> str:
        source = self.facts["src"][k]
        place = tag("small", escape(f"{source['file']}:{source['first']}"))
        rows = (
            write_row(n, text, f"l{k}.{n}" if (k, n) in self.spans else "", "has")
            for n, text in write(k, source)
        )
        return tag("h3", escape(source["name"]), " ", place) + tag("pre", *rows)

    def write_lines(self, k: int, source: dict):
        for n, text in enumerate(source["lines"], source["first"]):
            yield n, self.write_spans(k, n, text)

    def write_converted(self, k: int, source: dict):
        if "conv" not in source:
            yield from ((n, colour(x)) for n, x in enumerate(source["lines"], source["first"]))
        back = {int(n): line for n, line in source.get("back", {}).items()}
        for n, text in enumerate(source.get("conv", ()), 1):
            yield back.get(n, ""), colour(text)

    def write_spans(self, src: int, line: int, text: str) -> str:
        """A line of Python, its expressions in elements, the inner ones in the outer ones."""
        indent, pieces = len(text) - len(text.lstrip()), []
        for k in self.spans.get((src, line), ()):
            _, first, start, last, end = self.facts["spans"][k]
            start, end = indent if first < line else start, len(text) if last > line else end
            pieces.append((start, -end, k))
        html, at, ends = "", 0, []
        for start, end, k in [*sorted(pieces), (len(text), 0, None)]:
            while ends and (ends[-1] <= start or k is None):
                html += colour(text[at : ends[-1]]) + "</b>"
                at = ends.pop()
            html += colour(text[at:start])
            at = start
            if k is not None:
                html += write_part("b", "", f"s{k}").removesuffix("</b>")
                ends.append(-end)
        return html

    def write_c(self) -> list:
        """Blocks of lines: [first line, last line, kernel or -1, the HTML of the rows]."""
        lines = self.facts["c"].split("\n") if self.facts["c"] else []
        own = {int(n) for n in self.facts["own"]}
        calls = {k["call"]: n for n, k in enumerate(self.kernels)}
        starts = {k["lines"][0]: n for n, k in reversed([*enumerate(self.kernels)]) if k["lines"]}
        blocks, n = [], 1
        ends = sorted([*starts, len(lines) + 1])
        while n <= len(lines):
            kernel = starts.get(n, -1)
            last = self.kernels[kernel]["lines"][1] if n in starts else min(
                start for start in ends if start > n) - 1  # fmt: skip
            rows = (
                write_row(j, colour(lines[j - 1][:LONGEST]),
                          f"c{j}" if j in own else
                          f"k{calls[j]}" if kernel < 0 and j in calls else "")
                for j in range(n, last + 1)
            )  # fmt: skip
            blocks.append([n, last, kernel, "".join(rows)])
            n = last + 1
        return [blocks, count(len(starts), "kernel")]

    # ---- memory, time, ranks -----------------------------------------------------------------

    def write_arena(self) -> list:
        arena = self.facts["arena"]
        if not arena:
            return ["", ""]
        size, live, steps, pieces = arena["size"], arena["live"], arena["n"], []
        for k, (offset, nbytes, start, end, tracks, _) in enumerate(arena["blocks"]):
            large = nbytes / size > 0.06 and (end - start) / steps > 0.1
            ops = " → ".join(dict.fromkeys(self.tracks[t][0] for t in tracks[:3]))
            place = {"left": percent(start, steps + 1), "bottom": percent(offset, size),
                     "width": percent(max(1, end - start), steps + 1),
                     "height": percent(nbytes, size),
                     "__hue": self.hue.get(tracks[0], 0) if tracks else 0}  # fmt: skip
            title = f"{bytes_text(nbytes)} at byte {offset}, steps {start} to {end}"
            label = f"{ops} {bytes_text(nbytes)}" if large else ""
            pieces.append(write_part("div", "block", f"a{k}", escape(label), style=css(**place),
                                     title=title))  # fmt: skip
        least = f", {bytes_text(live)} in use at once" if live and live < size else ""
        html = tag("div", tag("span", bytes_text(size)), tag("span", "0"), class_="axis")
        html += tag("div", *pieces, class_="blocks")
        html += tag("div", tag("span", "step 0"), tag("span", str(steps)), class_="steps")
        return [html, bytes_text(size) + least]

    def write_times(self) -> list:
        """The times of kernels, and of lines: a kernel's is shared by its records."""
        kernels, lines, number = Counter(), Counter(), Counter()
        for kernel in self.kernels:
            us, name = kernel.get("us") or 0, kernel["name"]
            kernels[f"n{name}"] += us
            number[name] += 1
            for span in (self.tracks[t][2] for t in kernel["tracks"]):
                if span >= 0:
                    lines["l{}.{}".format(*self.facts["spans"][span])] += us / len(kernel["tracks"])
        total = sum(kernels.values())
        if not total:
            return ["", ""]
        names = {f"n{k}": f"{k} ×{n}" if n > 1 else k for k, n in number.items()}
        html = ""
        for view, times in (("kernels", kernels), ("lines", lines)):
            bars = (self.write_bar(x, names, us, times) for x, us in times.most_common())
            html += tag("div", *bars, data_view=view, **HIDDEN if view == "lines" else {})
        return [html, f"{write_time(total)} a run"]

    def write_bar(self, address: str, names: dict, us: float, times: Counter) -> str:
        kernel = self.first.get(address[1:])
        hue, title = (kernel or 0) * 137 % 360, ""
        if kernel is None:
            src, line = address[1:].split(".")
            names = {address: f"{self.facts['src'][int(src)]['file']}:{line}"}
        else:
            title = escape(self.kernels[kernel].get("host", ""))
        part = percent(us, max(times.values()))
        inside = (tag("span", escape(names[address])), tag("s", style=css(width=part)),
                  tag("span", write_time(us)))  # fmt: skip
        return write_part("div", "bar", address, *inside, style=css(__hue=hue), title=title)

    def write_ranks(self) -> str:
        html = ""
        for k, each in enumerate(self.facts.get("ranks") or ()):
            html += tag("h3", f"rank {each['rank']}")
            used = {letter for _, placed, *_ in each["recs"] for letter in placed}
            html += tag("p", "; ".join(PLACED[x] for x in PLACED if x in used), class_="why")
            for j, (track, placed, sent, nbytes) in enumerate(each["recs"]):
                words = self.tracks[track][0], placed, f"{sent} {bytes_text(nbytes)}" * bool(sent)
                cells = (tag("span", escape(word)) for word in words)
                html += write_part("div", "piece", f"r{k}.{j}", *cells)
        return html

    # ---- passes ------------------------------------------------------------------------------

    def write_ruler(self) -> str:
        html = ""
        for k, stage in enumerate(self.facts["stages"]):
            change = f"{write_change(stage)} · {stage['ms']} ms"
            words = change if k else count(len(stage["recs"]), "record")
            if stage["name"] == "kernels" and self.kernels:
                words = count(len(self.kernels), "kernel")
            inside = tag("b", escape(stage["name"])), tag("small", words)
            html += tag("button", *inside, data_stage=k, tabindex=-1)
        return html

    def write_rules(self) -> list[str]:
        """For each pass the rewrites of its rules."""
        return [
            "".join(
                write_part("button", "", f"g{k}.{j}", escape(rule["name"]), " ",
                           tag("small", write_change(rule)))
                for j, rule in enumerate(stage.get("rules", ()))
            )
            for k, stage in enumerate(self.facts["stages"])
        ]  # fmt: skip


def write_change(change: dict) -> str:
    return f"+{len(change['new'])} −{len(change['gone'])}"
