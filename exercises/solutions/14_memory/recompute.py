"""A recomputation policy: which values to let go, and make again later.

The memory of a training step has a peak, mostly where the forward ends and the backward begins.
Some values wait through it: made before, needed after. Each could be let go and *made again* where
it is read, from others that are there anyway. It saves its bytes at the peak, and costs the time to
make it. Which ones?

Write `chosen(plans, excess, price)`. `plans` is a list, in no particular order, each a plan with

- `value`, what would be let go, `nbytes` (more than 0), what that saves, and `seconds`, what it
  costs to make it again. `score` is seconds / nbytes;
- `sources`, the set of values it would be made from.

Return a list of some of them:

- Take the cheapest per byte first, and stop as soon as `excess` bytes are saved. If there are not
  enough, save what can be saved.
- None may have a score of more than `price`.
- The values that a plan is made from must be there when it is made. So a value that is let go must
  not be a source of any other plan in the list, in whichever order they stand there. A plan that
  does not fit those taken before is passed over; later ones may fit.
- There are never two plans of one value.

    a: 64 bytes, 1 µs, from x;  b: 64 bytes, 2 µs, from a;  c: 64 bytes, 3 µs, from x
    excess 100  ->  a, c: b would be made from a, which is gone

The engine asks this of every program that is too large, with the values at its peak.
Source: Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016; the
choice by cost over bytes: Kirisame and others, "Dynamic tensor rematerialization", 2021.
"""


def chosen(plans, excess, price) -> list:
    """The plans to carry out: the cheapest per byte that fit together, until enough is saved."""
    found, saved = [], 0
    gone, needed = set(), set()
    for plan in sorted(plans, key=lambda plan: plan.score):
        if saved >= excess or plan.score > price:
            return found
        if plan.value not in needed and not gone & plan.sources:
            found.append(plan)
            saved += plan.nbytes
            gone.add(plan.value)
            needed |= plan.sources
    return found
