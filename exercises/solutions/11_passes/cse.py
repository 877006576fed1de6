"""Common subexpressions: the same operator on the same inputs is computed once.

Two lines of yours may ask for the same value, and a derivative often asks for what the forward has
computed. Write two functions:

- `exact(value)`: an attribute of a record (a shape, a number, a dtype, a name) as a key. For
  Python `0.0 == -0.0` and `1 == True == 1.0`, but an operator can tell them apart, and `nan` is
  not equal to itself. So the key has the type beside the value, and for a float its `repr`. The key
  of a tuple is the tuple of the keys of its parts.
- `cse(program)`: the program with equal records written once. For each record, in order:
    - what its inputs have been replaced by takes their place, and each of its regions (a dict,
      `regions(record)`) becomes `cse` of it: `with_inputs(record, inputs, inside)` is the record
      with that, or the very same one if nothing changes;
    - it stays if it has regions, is in the set `binders(program)` or has an effect: what is printed
      twice is printed twice. All other operators do nothing but compute; even a random number is a
      formula of a state, and two draws take two states as inputs;
    - otherwise it is equal to an earlier record (that has stayed) if operator, dtype, shape, inputs
      and attributes are equal. Inputs are equal if they are the same record, or both Python numbers
      (`x.op is NUMBER`) with equal `exact(x.attrs["value"])`. Attributes are a dict, in any order;
    - then the earlier one stands for it from here on, and it is gone. Unless both of them are among
      `program.results`: two results stay two pieces of memory, because the caller may write to
      one. What stands for a result is a result.
  Return `with_records(program, records, now)`: `now` is a dict of what stands for a record of the
  program, where that is not the record itself.

    v1 = exp(x); v2 = exp(x); v3 = add(v1, v2)       ->  v1 = exp(x); v3 = add(v1, v1)

Source: value numbering, Cocke and Schwartz, "Programming languages and their compilers", 1970;
Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 8.5.1.
"""

from minipaddle.engine.ir.cut import has_effect
from minipaddle.engine.ir.edit import with_inputs, with_records
from minipaddle.engine.ir.program import NUMBER, binders, regions


def exact(value):
    """An attribute as a key: equal for what no operator can tell apart."""
    if type(value) is tuple:
        return tuple(exact(part) for part in value)
    if type(value) is float:
        return float, repr(value)
    return type(value), value


def _same_input(x):
    return exact(x.attrs["value"]) if x.op is NUMBER else x


def _key(record):
    attrs = [(name, exact(value)) for name, value in sorted(record.attrs.items())]
    inputs = [_same_input(x) for x in record.inputs]
    return record.op, record.dtype, record.shape, tuple(inputs), tuple(attrs)


def cse(program):
    """The program with equal records written once."""
    seen, now, records = {}, {}, []
    results, stays = {*program.results}, binders(program)
    for old in program.records:
        inside = {name: cse(region) for name, region in regions(old).items()}
        record = with_inputs(old, [now.get(x, x) for x in old.inputs], inside)
        if not (inside or old in stays or has_effect(old)):
            earlier = seen.setdefault(_key(record), record)
            if earlier is not record and not {old, earlier} <= results:
                now[old] = earlier
                if old in results:
                    results.add(earlier)
                continue
        if record is not old:
            now[old] = record
            if old in results:
                results.add(record)
        records.append(record)
    return with_records(program, records, now)
