"""An explorer's facts for a terminal: the chain of each line of the user."""

from ..style import bytes_text, count

MOST = 5
"""How many operators or kernels of a line are named."""


def write_text(facts: dict) -> str:
    """A title, and for each line its records, kernels, lines of C, places in memory, messages."""
    lines, families = [summary(facts)], families_of(facts["tracks"])
    by_line = tracks_by_line(facts)
    for source, row in enumerate(facts["src"]):
        there = sorted(line for s, line in by_line if s == source)
        lines += [f"{row['name']}  {row['file']}".rstrip()] if there else []
        for line in there:
            text = row["lines"][line - row["first"]].strip()
            lines.append(f"  {line:4}  {text}")
            lines += [f"        {part}" for part in chain(facts, by_line[source, line], families)]
    return "\n".join(lines)


def summary(facts: dict) -> str:
    """How many records, passes and kernels there are, and the size of the arena."""
    first, *later = facts["stages"]
    parts = [f"{facts['title']}: {count(len(first['recs']), 'record')}"]
    parts += [f"{count(len(later) - 1, 'pass')} with changes"] if len(later) > 1 else []
    kernels, arena = facts["kernels"], facts["arena"]
    parts += [count(len(kernels), "kernel")] if kernels else []
    parts += [f"arena {bytes_text(arena['size'])}"] if arena else []
    parts += [count(len(facts["ranks"]), "rank")] if "ranks" in facts else []
    return ", ".join(parts)


def tracks_by_line(facts: dict) -> dict[tuple, list[int]]:
    """(source, line) -> the tracks of the first program that came from the line."""
    table: dict[tuple, dict] = {}
    spans = facts["spans"]
    for track, *_ in facts["stages"][0]["recs"]:
        span = facts["tracks"][track][2]
        if span >= 0:
            table.setdefault(tuple(spans[span][:2]), {})[track] = None
    for span, tracks in facts["calls"].items():
        table.setdefault(tuple(spans[span][:2]), {}).update(dict.fromkeys(tracks))
    return {place: [*tracks] for place, tracks in table.items()}


def families_of(tracks: list) -> dict[int, set]:
    """For each track it and all that came from it."""
    families = {k: {k} for k in range(len(tracks))}
    for k in range(len(tracks) - 1, -1, -1):
        for source in tracks[k][5]:
            families[source] |= families[k]
    return families


def chain(facts: dict, tracks: list[int], families: dict[int, set]):
    """The chain of some tracks, a line for each level."""
    own = set().union(*(families[t] for t in tracks))
    rows = facts["tracks"]
    yield f"records  {name_some(rows[t][0] for t in tracks)}"
    names = [(k["name"], k["us"]) for k in facts["kernels"] if not own.isdisjoint(k["tracks"])]
    if names:
        total = sum(k["us"] or 0 for k in facts["kernels"])
        spent = sum(us or 0 for _, us in names)
        share = f": {spent:.1f} µs of {total:.1f}" if total else ""
        yield f"kernels  {name_some(name for name, _ in names)}{share}"
    lines = [line for line, of in facts["own"].items() if not own.isdisjoint(of)]
    if lines:
        yield f"C        {count(len(lines), 'line')}, the first is {min(lines)}"
    blocks = facts["arena"]["blocks"] if facts["arena"] else ()
    places = [b for b in blocks if not own.isdisjoint(b[4])]
    if places:
        size = bytes_text(sum(b[1] for b in places))
        yield f"arena    {count(len(places), 'place')}, {size}"
    gradients = [k for k, row in enumerate(rows) if row[6] in own and row[6] >= 0]
    if gradients:
        yield f"backward {name_some(dict.fromkeys(rows[k][0] for k in gradients))}"
    for rank in facts.get("ranks", ())[:1]:
        moves = [(name, n) for t, _, name, n in rank["recs"] if name and t in own]
        if moves:
            sent = ", ".join(f"{name} {bytes_text(n)}" for name, n in moves[:MOST])
            yield f"messages {sent}"


def name_some(names) -> str:
    """The first names, and how many more there are."""
    names = [*names]
    more = len(names) - MOST
    return ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")
