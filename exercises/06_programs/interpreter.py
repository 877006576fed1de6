"""An interpreter: run the records in order.

Write `run(self, program, arrays)`, which is `Run.__call__` of the engine. `arrays` are the values
of `program.given` (inputs, then states), in order. Return the list of the values of
`program.results` (outputs, then the new values of states), in order.

`program.records` stand in an order in which every value is made before it is taken. Each has
`record.inputs`, a list of records. One whose `op` is `NUMBER` stands for a Python number,
`record.attrs["value"]`; it is not among the program's records, and may be a result too.

What belongs to a single record the engine has for you:

- `self.begin` takes the program and the arrays; call it before anything else. It finds out how
  large open sizes are today, and raises if the program is not for such arrays;
- `self.compute` takes the program, a record, and a list with the values of its inputs, and gives
  the record's value;
- `self.number` takes the number that a `NUMBER` among the results stands for, and gives it as it is
  today (it may be an open size).

Let values go as soon as nobody needs them: `interpreter.last_uses(program)` says, for each number
of a record, which those are (numbers may be among them). Keep no second list of them,
and change nothing of what you are given: a program runs many times, and sometimes within itself.
"""

from minipaddle.engine.ir import interpreter
from minipaddle.engine.ir.program import NUMBER


def run(self, program, arrays) -> list:
    """The values of the program's results."""
    raise NotImplementedError
