"""The facts of a made-up training step, in the form that a page reads."""

from itertools import count

NET = """    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(block(x) + x)
        return self.head(x)  # </script><b>"""
STEP = """def step(x, y):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    return loss"""
CONVERTED = """def forward(self, x):
    x = self.stem(x)
    x = convert_for(self.blocks, x)
    return self.head(x)"""
UPDATE = ("multiply", "subtract")


class NetFacts:
    """A network of blocks: captured, taken apart by one pass, fused into kernels, written as C."""

    def __init__(self, blocks: int = 4):
        self.spans, self.paths, self.tracks, self.rows = [], [], [], []
        self.kernels, self.text, self.own = [], [], {}
        net = {"name": "Net.forward", "file": "net.py", "first": 10, "lines": NET.split("\n")}
        net |= {"conv": CONVERTED.split("\n"), "back": {"2": 11, "3": 12, "4": 14}}
        step = {"name": "step", "file": "net.py", "first": 20, "lines": STEP.split("\n")}
        self.sources, self.stages = [net, step], []
        self.capture(blocks)
        loss = self.decompose()
        self.fuse(loss)

    def span(self, src: int, words: str) -> int:
        """The number of the span of the words."""
        lines, first = self.sources[src]["lines"], self.sources[src]["first"]
        at = next(k for k, line in enumerate(lines) if words in line)
        column = lines[at].index(words)
        return self.number(self.spans, [src, first + at, column, first + at, column + len(words)])

    def number(self, things: list, thing) -> int:
        if thing not in things:
            things.append(thing)
        return things.index(thing)

    def add(self, op, span, path, inputs=(), names=(), came=(), of=-1, shape="8, 32") -> int:
        """A new record; returns its track."""
        place = self.number(self.paths, path)
        self.tracks.append([op, f"float32[{shape}]", span, place, "", list(came), of])
        self.rows.append([len(self.tracks) - 1, list(inputs), list(names), -1])
        return len(self.tracks) - 1

    def capture(self, blocks: int) -> None:
        def linear(name, x, words):
            path, span = ["forward", "Net", name], self.span(0, words)
            y = self.add("matmul", span, path, x, [f"{name}.w"] + ["x"] * (not x))
            return self.add("add", span, path, [y], [f"{name}.b"])

        x = linear("stem", [], "self.stem(x)")
        for k in range(blocks):
            y = linear(f"blocks.{k}", [x], "block(x)")
            y = self.add("add", self.span(0, "block(x) + x"), ["forward", "Net"], [y, x])
            x = self.add("relu", self.span(0, "F.relu(block(x) + x)"), ["forward", "Net"], [y])
        x = linear("head", [x], "self.head(x)")
        self.calls = {self.span(1, "net(x)"): list(range(len(self.tracks)))}
        words = "F.mse_loss(net(x), y)"
        self.loss = self.add("mse_loss", self.span(1, words), ["forward"], [x], ["y"], shape="")
        self.differentiate()
        self.stages.append({"name": "captured", "ms": 0, "recs": self.rows, "gone": [], "new": []})

    def differentiate(self) -> None:
        """Each record's gradient in reverse, and the update of each parameter."""
        span, gradient, updates = self.span(1, "loss.backward()"), {}, []
        for t, inputs, names, _ in self.rows[::-1]:
            op, path = self.tracks[t][0], self.paths[self.tracks[t][3]]
            users = [gradient[u] for u, reads, *_ in self.rows[: self.loss + 1] if t in reads]
            reads = [*users, *inputs]
            gradient[t] = self.add(f"{op}_grad", span, ["backward", *path[1:]], reads, of=t)
            updates += [(name, gradient[t]) for name in names if "." in name]
        for name, g in updates:
            for op in UPDATE:
                place = self.span(1, "opt.step()"), ["update", name]
                g = self.add(op, *place, [g], [name] * (op == "subtract"), shape=name[-1])

    def decompose(self) -> list[int]:
        """The loss becomes three records; returns them."""
        old = self.stages[0]["recs"]
        x, n = old[self.loss][1], len(old)
        self.rows, new = [], []
        for op in ("subtract", "multiply", "mean"):
            place = self.tracks[self.loss][2], ["forward"]
            new.append(self.add(op, *place, new[-1:] or x, ["y"] * (not new), came=[self.loss]))
        kept = [[t, [new[-1] if i == self.loss else i for i in reads], names, group]
                for t, reads, names, group in old[self.loss + 1 :]]  # fmt: skip
        recs = [[0, self.loss], *self.rows]
        for k, row in enumerate(kept, self.loss + 1):
            recs.append([k, k + 1] if row == old[k] else row)
        self.rows = [*old[: self.loss], *self.rows, *kept]
        rules = [{"name": "mse_loss -> mean", "gone": [self.loss], "new": new}]
        self.stages.append({"name": "decompose", "ms": 1.5, "recs": recs, "gone": [self.loss],
                            "new": new, "rules": rules})  # fmt: skip
        assert n == len(kept) + self.loss + 1
        return new

    def fuse(self, loss: list[int]) -> None:
        """Kernels: a product alone, all records up to the next one together."""
        groups, layer = [], None
        for t, *_ in self.rows:
            op, path = self.tracks[t][0], self.tracks[t][3]
            if op.startswith("matmul") or path != layer or not groups:
                groups.append([])
            layer = path
            groups[-1].append(t)
        group_of = {t: k for k, tracks in enumerate(groups) for t in tracks}
        self.rows = [[t, reads, names, group_of[t]] for t, reads, names, _ in self.rows]
        for name, recs in (("fusion", self.rows), ("kernels", [[0, len(self.rows)]])):
            self.stages.append({"name": name, "ms": 20, "recs": recs, "gone": [], "new": []})
        texts, number = {}, count()
        for k, tracks in enumerate(groups):
            ops = [self.tracks[t][0] for t in tracks]
            shared = ops[0] in UPDATE
            name = "k_update" if shared else f"k{next(number)}_{ops[-1]}"
            lines = texts.get(name) or self.write(name, ops)
            texts[name] = lines
            for line, t in enumerate(tracks, lines[0] + 2):
                self.own.setdefault(str(line), []).append(t)
            self.kernels.append({"name": name, "lines": lines, "call": None, "tracks": tracks,
                                 "us": 1.0 + 7 * k % 10})  # fmt: skip
        self.kernels[3] |= {"name": "sort", "lines": None, "host": "runs in NumPy"}

    def write(self, name: str, ops: list[str]) -> list[int]:
        """Write a kernel; returns its first and last line."""
        first = len(self.text) + 1
        body = [f"    const float t{k} = {op}(in{k});" for k, op in enumerate(ops)]
        self.text += [f"/* {name} */", f"static void {name}(float *out) {{", *body, "}", ""]
        return [first, len(self.text)]

    def json(self) -> dict:
        """All of it."""
        n = len(self.kernels)
        blocks = [[1024 * (k % 8), 1024, k, min(k + 6, n), kernel["tracks"][-1:], ""]
                  for k, kernel in enumerate(self.kernels)]  # fmt: skip
        pieces = [[t, "[Shard(0)]", "all_gather" if k == 2 else "", 4096 if k == 2 else 0]
                  for k, (t, *_) in enumerate(self.rows)]  # fmt: skip
        return {
            "v": 1, "title": "step", "src": self.sources, "spans": self.spans,
            "paths": self.paths, "tracks": self.tracks,
            "calls": {str(k): v for k, v in self.calls.items()}, "stages": self.stages,
            "kernels": self.kernels, "c": "\n".join(self.text), "own": self.own,
            "arena": {"size": 8192, "live": 6144, "n": n, "blocks": blocks},
            "ranks": [{"rank": rank, "recs": pieces} for rank in range(2)], "why": {},
            "twins": {},
        }  # fmt: skip
