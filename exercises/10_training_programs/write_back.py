"""What a captured step leaves behind: states and their new values.

A training step changes things that were there before it and will be there after it: weights,
moments, running means, the counter of the random numbers. In a program each is a *state*. Its value
is read when a run begins. The run itself changes nothing; it computes new values, and when it has
come to its end they are written back. Write three functions:

- `updates(builder)`, when the trace ends. While a program is written, memory is a *symbolic array*:
  `builder.values[array]` is the record whose value it holds at the moment. For each of
  `builder.program.states` in order, give the record that its memory holds now, or None if it is
  still the one from the beginning, `state.record`. `builder.state_arrays[state.record]` is that
  memory.

- `overwritten(program, inputs)`. Some results are no arrays of their own. A *view*, such as a
  reshape, looks into the memory of its first input (`record.op.view`); operators with regions
  (`record.op.kind == "control"`) may hand on any input as it is, and so does `ITEM`, which takes
  one result out of several. A result of such a record may do the same with what it takes. Give the
  numbers of those of `program.results` that may be, or look into, memory that is written after a
  run: that of states with an update (`state.update` is not None), and that of `inputs`, a list of
  those of the program's inputs that are written in place.

- `write_back(self, inputs, outputs)`, after each run. `outputs` is a list of arrays: the outputs of
  `self.program`, then a value for each state with an update. First, those whose numbers are in
  `self.copied` (`overwritten` has found them) are replaced in the list by copies: they may look
  into memory that is about to change, and the list is used afterwards. Then the new values are
  written: `self.updates` is the list of the storages of the states with an update, in order, and
  each has a method `write`. At last `each.leave(inputs, *arrays)` for each of `self.after`
  (gradients, counters of schedules and other Python objects); the arrays are those whose
  numbers in `outputs` are `each.outputs`.

    state w;  v1 = reshape(w);  v2 = multiply(w, 0.9);  update w = v2;  return v1
    ->  updates: [v2];  overwritten: [0];  write_back: v1 is copied, then w is written
"""

from minipaddle.engine.ir.program import ITEM


def updates(builder) -> list:
    """For each state its new value's record, None if it has none."""
    raise NotImplementedError


def overwritten(program, inputs) -> list:
    """The numbers of the results that may look into memory which is written after a run."""
    raise NotImplementedError


def write_back(self, inputs, outputs) -> None:
    """Write what a run has computed for the states, and leave what belongs to Python's objects."""
    raise NotImplementedError
