"""The row nest: softmax, layer norm and every other loop that folds along a row.

A group of records is one loop nest. Some loops run over rows (they are *kept*: the result has an
element for each), the others along the row and are folded. How often must one walk along a row? A
softmax folds twice and then divides. A value's *stage* is the number of folds that must be complete
before it: the largest element is folded at stage 0, the sum of exponentials at stage 1, what is
stored is of stage 2. So there is one walk for each stage:

    for each row
        for each stage
            store what is known once a row
            accumulator = identity, for each fold of this stage
            for along the row
                store what belongs here, accumulate

Write `row_nest(w)`, which writes that C. `w` is the engine's writer of a nest:

- `w.nest.loops` are all loops, the outermost first, `w.parallel` is the set of those over rows;
- `with w.each_row(loops):` and `with w.loop(loops):` write `for` around what is written inside;
  both take a list, maybe empty. `w.put("…")` writes a line (or several) as it is;
- `w.stages` is how many stages there are. `w.folds(stage)` are the folds whose terms are known at a
  stage; `w.outputs(stage, True)` the results that are stored once a row then, and
  `w.outputs(stage, False)` those that are stored inside the row;
- `fold = Accumulator(node, w.fresh(node.of.op.name))` describes one: `fold.type`, `fold.name` and
  `fold.identity` for its declaration, `fold.dtype`; `fold.combine(term, fold.name)` is the
  accumulator with one more term, and the term is `w.text(node.args[0], memo)`;
- `w.stores(outputs, memo)` is a list of targets (C text, value, dtype); a fold's target is
  (fold.name, combined value, fold.dtype). `w.assign(targets)` writes the statements for a list of
  targets: call it once for each loop, for a value may lie where a result is written. `memo` is a
  dict that is new for each loop;
- when a fold is complete, say so: `w.known[node] = ScalarText(fold.name, (), fold.dtype)`.

A stage without folds and without results inside the row needs no loop. Values that a later stage
needs again are computed again; to keep them, as the engine does, is not asked.

    y = x / sum(x)  ->  two loops along the row: `sum = sum + x[i * 5 + j];`, `y[i * 5 + j] = …;`

`w.each_row(loops, *w.threads(w.nest.size))` shares rows among threads, and words such as "simd"
after the list of `w.loop` make an OpenMP pragma (a fold needs `fold.clause`: look at the engine).
The engine writes each such kernel with it: your code normalises, and takes the loss.
Source: rows in one pass, Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from minipaddle.engine.codegen.accumulator import Accumulator
from minipaddle.engine.codegen.scalar import ScalarText


def row_nest(w):
    """Write a nest whose innermost loop is folded."""
    rows = [loop for loop in w.nest.loops if loop in w.parallel]
    along = [loop for loop in w.nest.loops if loop not in w.parallel]
    with w.each_row(rows, *w.threads(w.nest.size)):
        for stage in range(w.stages):
            if once := w.outputs(stage, True):
                w.assign(w.stores(once, {}))
            folds = [Accumulator(node, w.fresh(node.of.op.name)) for node in w.folds(stage)]
            inside = w.outputs(stage, False)
            if folds or inside:
                for fold in folds:
                    w.put(f"{fold.type} {fold.name} = {fold.identity};")
                _walk(w, along, folds, inside)
            for fold in folds:  # from here on its value is the accumulator's
                w.known[fold.node] = ScalarText(fold.name, (), fold.dtype)


def _walk(w, along, folds, inside):
    """One loop along the row: results and accumulators, all read before any is written."""
    memo = {}
    with w.loop(along):
        targets = w.stores(inside, memo)
        for fold in folds:
            term = w.text(fold.node.args[0], memo)
            targets.append((fold.name, fold.combine(term, fold.name), fold.dtype))
        w.assign(targets)
