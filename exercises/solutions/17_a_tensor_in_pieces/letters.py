"""Letters: the sharding rule of an operator follows from its kind.

A sharding rule gives the axes of inputs and results letters, as `einsum` does: axes with one letter
are cut alike, each rank computes on its pieces and has a piece of the result. Where a letter of an
input is missing in the result, each rank has a term, and the rule says how terms are combined. An
axis without a letter has to be whole. No elementwise operator and no reduction writes such a rule:
write the two functions that derive it, for any number of inputs and of axes.

They return `LetterRule(inputs, results, terms)`:

- `inputs` is a list with a tuple for each input, and `results` one for each result (here there is
  one). Such a tuple has an entry for each axis: `Axis("A")`, or None for an axis without a letter.
- `terms` is a dict: for a letter that the result lacks "sum", "max", "min" or "prod".

They are given the operator `op`, the list `specs` (of each input its spec, with `spec.shape` and
`spec.ndim`; a Python number stands for itself), `attrs`, and `results`, the list of the specs of
the results. `names(n)` is a string of n different letters.

`broadcast_rule` is that of elementwise operators. Their inputs are broadcast: axes are counted from
the last, and an axis of size 1 that is repeated has no letter. A number has no axes: ().

`reduction_rule` is that of reductions of one input over the axes `attrs["axis"]`, a tuple of
numbers ≥ 0. With `attrs["keepdim"]` a reduced axis stays, with size 1 and without a letter.
`collective_of(op)` says how the terms of a reduction are combined, or is None: then it needs all of
a reduced axis.

    add of [4, 3] and [3]: AB,B->AB;  sum of [4, 3] over 0: AB->B, terms {"A": "sum"}

Source: Xu et al., "GSPMD", 2021; Paddle's `get_phi_spmd_rule`.
"""

from minipaddle.engine.core.op import names
from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import Axis, LetterRule, collective_of


def broadcast_rule(op, specs, attrs, results):
    """The letters of an elementwise operator."""
    shape = results[0].shape
    letters = [Axis(c) for c in names(len(shape))]

    def _own(spec):
        if not isinstance(spec, Spec):
            return ()
        skipped = len(shape) - spec.ndim  # axes that this input lacks
        pairs = zip(spec.shape, shape[skipped:], letters[skipped:])
        return tuple(letter if n == m else None for n, m, letter in pairs)

    return LetterRule([_own(spec) for spec in specs], [tuple(letters)])


def reduction_rule(op, specs, attrs, results):
    """The letters of a reduction, and how the terms of a reduced axis are combined."""
    over, combine = attrs["axis"], collective_of(op)
    letters = [Axis(c) for c in names(specs[0].ndim)]
    terms = {letters[d].letter: combine for d in over} if combine else {}
    given = [a if combine or d not in over else None for d, a in enumerate(letters)]
    kept = [
        None if d in over else a for d, a in enumerate(letters) if attrs["keepdim"] or d not in over
    ]
    return LetterRule([tuple(given)], [tuple(kept)], terms)
