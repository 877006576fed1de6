"""A verifier: is this a program at all?

Programs come from tracers, from files, and from code that changed them. A mistake that is let
through shows up far away, as a wrong number. Write two checks; each returns nothing if all is
well, and raises `VerifyError` with a message that shows the record (`f"{record}"` says its operator
and its spec) otherwise.

`check_uses(program)`: every value is defined once, and before its uses.

- `program.given` (the records of inputs and states) are defined from the start. None of them stands
  there twice;
- then `program.records` define their own values, one after the other. None stands there twice, or
  is a given one;
- everything in `record.inputs`, and in `program.results`, must be defined by then. Only a record
  whose `op` is `NUMBER`, a Python number, needs no definition;
- a record whose `dtype` is None has several results in one. Only a record whose `op` is `ITEM`
  may take it; it is no result of a program.

`check_spec(record)`: what a record says of its result is what the rule of its operator says.
`by_rule(record)` asks the rule. The record itself says `record.spec`, or `record.shape`, a tuple of
specs, if it has several results. `alike(found, own)` compares two of either kind: first what the
rule found, then the record's own. If the rule raises, whatever it is, the record makes no sense.

    program p(x: float32[2]) { v2 = exp(v1); v1 = tanh(x); return v2 }  ->  VerifyError: exp ...
    v1 = add(float32[2], float32[3]) : float32[2]                       ->  VerifyError: add ...

The engine calls them for every program it reads from a file.
"""

from minipaddle.engine.ir.program import ITEM, NUMBER
from minipaddle.engine.ir.verifier import VerifyError, compatible, infer_spec


def check_uses(program) -> None:
    """Raise VerifyError unless every value is defined once, before its uses."""
    defined = set()

    def define(record):
        if record in defined:
            raise VerifyError(f"{record} is defined twice")
        defined.add(record)

    def use(value, user):
        if value not in defined and value.op is not NUMBER:
            raise VerifyError(f"{user} uses {value}, which nothing before it defines")

    for record in program.given:
        define(record)
    for record in program.records:
        for value in record.inputs:
            use(value, record)
            if value.dtype is None and record.op is not ITEM:
                raise VerifyError(f"{record} takes several results as one: {value}")
        define(record)
    for value in program.results:
        use(value, program.name)
        if value.dtype is None:
            raise VerifyError(f"{program.name} gives several results as one: {value}")


def check_spec(record) -> None:
    """Raise VerifyError unless a record's spec is what the rule of its operator says."""
    own = record.shape if record.dtype is None else record.spec
    try:
        found = infer_spec(record)
    except Exception as error:  # whatever a rule stumbles over: the record is wrong
        raise VerifyError(f"{record}: {error}") from error
    if not compatible(found, own):
        raise VerifyError(f"{record}: the rule of {record.op.name} says {found}")
