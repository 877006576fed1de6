"""Where overlap breaks: gradients that are computed too late.

A bucket leaves when its gradients are there. A pass before ours may have put the computing of
gradients at the very end: that saves memory. But then all buckets leave at the end, and nothing is
left to be computed meanwhile. Write `hoist_gradients(program)`, which gives the records of a
program as a list in an order in which gradients are computed early:

- `program.records` are the records, each after its `inputs` (records too; what is given to the
  program is not in the list). A record is an *average* if `travels(record)`: its input is a
  gradient, which will travel;
- a record's *goals* are the averages that need it, directly or through others. A record is *urgent*
  if it is an average, or has one goal or two, and leads to nothing else: neither it nor what needs
  it, up to the averages, is one of `program.results` or has an effect (`has_effect(record)`). (Two,
  because one kernel often computes both gradients of a norm.) What happens after an average does
  not count;
- go through the records in their order. Place each that is not placed yet. When a record has been
  placed, look at its users, in the order in which they stand in the program: a user that is urgent,
  and all of whose inputs are now placed or given to the program, is placed at once, and then *its*
  users are looked at in the same way, before the next user.

    v1 = g·w, v2 = v1·w, v3 = v2·w, v4 = tanh(v3), a = tanh(g), b = tanh(v1), c = tanh(v2), and then
    averages of v4, c, b, a  ->  a is urgent, but takes nothing that is placed: it stays after v4.
    b comes right after v1, c after v2, and each average right after its gradient.

Source: Sethi and Ullman's old trade of registers against order, turned round: here what waits is
not memory but the network.
"""

from minipaddle.engine.ir.cut import has_effect
from minipaddle.engine.passes.async_collectives import travels


def hoist_gradients(program) -> list:
    """The records, with what leads to a gradient or two as soon as it can be computed."""
    raise NotImplementedError
