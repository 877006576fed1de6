"""When may a slice assignment write where its input lies?

A decoder keeps keys and values of all tokens so far in caches, arrays of megabytes, and each step
writes a row of them: `cache[:, at] = k`. The kernel of a slice reads nothing of its input, so it
may write where that lies, once nobody needs the old value: the exercise before this one. But a
cache is a *state*, which outlives the run. If the run fails, because an index is out of range, say,
no state may have changed. So a run works on copies of the states that are written before something
fails; it writes all others where they lie.

Write `find_early_writes(plan, failing)`: the numbers of the states that need a copy, in order.

- `plan.program.records` run in their order. `failing` are the records that may fail. One that is
  not among them stands in a branch or a loop: it may fail at any time until the end.
- `plan.location(record, k)` is where result k of a record lies. Its `kind` is "state" if that is a
  state, and `.k` is the state's number. A record has `len(specs_of(record))` results. Several
  records, one after the other, may write to one state.
- `is_alias(record)`: a view, or one of several results, writes nothing. Its location is that of
  what it looks at.
- A put or a slice (`record.op.name in IN_PLACE`) checks all its indices before it writes: if it
  fails, it has written nothing. Any other record that fails may have written half of its results.

    cache = put(cache, at, x)                     the put may fail      ->  []
    cache = put(cache, at, x); take(table, word)  the take may fail     ->  [0]
    cache = put(put(cache, at, x), next, x)       both puts may fail    ->  [0]

Source: Gray, "The transaction concept: virtues and limitations", 1981: everything or nothing.
"""

from minipaddle.engine.codegen.kernel import IN_PLACE
from minipaddle.engine.codegen.step import is_alias
from minipaddle.engine.passes.lifetimes import specs_of


def find_early_writes(plan, failing) -> list:
    """The states that are written before a record fails."""
    when = {record: t for t, record in enumerate(plan.program.records)}
    end = len(when)
    last = max((when.get(record, end) for record in failing), default=-1)
    found = set()
    for record, t in when.items():
        checks = record.op.name in IN_PLACE
        if not is_alias(record) and (t < last or (t == last and not checks)):
            places = [plan.location(record, k) for k in range(len(specs_of(record)))]
            found.update(place.k for place in places if place.kind == "state")
    return sorted(found)
