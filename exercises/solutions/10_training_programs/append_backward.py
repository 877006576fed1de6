"""Append the backward: the walk back, over a tape or into a program.

Write `append_backward(seeds, wanted=None, *, blocked=frozenset(), release=False)`. All derivatives
of the engine come from this one walk: `backward()`, `paddle.grad`, and, while a program is traced,
the backward that is written after the forward: a rule applies operators, and an operator that is
applied to a symbolic array is appended to the program.

- `seeds` is a list of pairs (record, cotangent): the results we start from. A record may stand
  there more than once;
- `wanted` is a set of records. Return a dict that has the cotangent of each wanted record to which
  one has arrived. A wanted record may well have wanted records among its inputs. If `wanted` is
  None, it is all leaves: records without inputs (`record.inputs` is an empty list);
- a cotangent that leads to nothing wanted is not computed: in a program it would be a record for
  nobody. A record *leads on* if it is wanted, or takes one that does. No cotangent arrives at a
  record of `blocked`, wanted or not, nor passes it;
- before anything else is done with a record's cotangent, the record's hooks see it;
- with `release`, each record that was passed, leaves apart, lets go of what it kept:
  `record.saved = FREED`;
- records that are written meanwhile belong to the layer of the record we pass. Therefore set
  `current.top.passing` to that record before its hooks are called, and put back the old value when
  the walk is over, even if an error ends it.

The engine has, some of them by your hand: `grad.history(records)`, everything they were computed
from, and the records themselves, inputs before uses; `grad.accumulate(cotangents, record, g)`,
which adds `g` to what has arrived; `grad.apply_hooks(hooks, g)` (`record.hooks` is a list or
None); `grad.input_cotangents(record, g, leading)`, which gives pairs (input record, cotangent) for
those inputs that are in the set `leading`.

    y = tanh(x) * x, seeds [(y, 1)], wanted {x}  ->  {x: tanh(x) + x * (1 - tanh(x)^2)}

Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 3.
"""

from minipaddle.engine.core import grad
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.core.record import FREED


def append_backward(seeds, wanted=None, *, blocked=frozenset(), release=False) -> dict:
    """The cotangents of the wanted records, given those of results."""
    arrived = {}
    for record, g in seeds:
        grad.accumulate(arrived, record, g)
    order = grad.history(arrived)
    if wanted is None:
        wanted = {record for record in order if not record.inputs}
    leading = set(wanted)
    for record in order:  # its inputs have had their turn
        if not leading.isdisjoint(record.inputs):
            leading.add(record)
    leading -= blocked
    found, top = {}, current.top
    before = top.passing
    try:
        for record in reversed(order):  # all uses of a value come before the value
            if record not in leading or record not in arrived:
                continue
            top.passing = record
            g = grad.apply_hooks(record.hooks or (), arrived.pop(record))
            if record in wanted:
                found[record] = g
            if record.inputs:
                for edge, gx in grad.input_cotangents(record, g, leading):
                    grad.accumulate(arrived, edge, gx)
                if release:
                    record.saved = FREED
    finally:
        top.passing = before
    return found
