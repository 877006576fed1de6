"""`if` at run time: it decides late, and a tensor of a program makes it try both sides.

The converter has turned an `if` into a call of your function

    if_else(test, then, else_, live_out=("y",), local=("t",), jumps=False)

`then` and `else_` are functions without arguments and results; they bind variables of the enclosing
function. `else_` is None if there was no `else`. `live_out` names the variables bound inside that
are needed afterwards, `local` those that are not. (`jumps` matters to loops; ignore it here.)

- A test that has a value (`not is_static(test)`): call the one side that counts, and only that.
- A tensor of a program has none yet. Then `cond(test, f, g)` writes both sides into the program: it
  calls f() and g() once, one after the other, each in a region of its own; each must return a list
  of what the variables in `live_out` hold at its end. `cond` returns the list of what they will
  hold after the `if`, whichever side is taken: put that into the variables.

Both sides must start from the same variables. So after each side *all* variables, kept or dropped,
get back the value they had before the `if`; otherwise `else_` would see what `then` has done, and a
value that was made inside a region would be used outside.

`variables(names, then, else_)` gives a list of the variables with these names (as the functions
know them; None may be among the functions): `v.get()` is the value, and `v.set(value)` sets it. A
variable that is not bound yet gives `MISSING`, and setting it to that unbinds it: you need not
treat it specially. Tensors and numbers in variables are all that is asked; the engine's own
function also puts back lists, dicts and attributes.

    y = x                                     x of a program, positive when it runs:
    if x > 0: y = x * 2                       y is 2x after the call
    else:     y = y - 1                       y - 1 must see y = x, not x * 2

Source: the same idea in Moldovan et al., "AutoGraph", 2019, section 5.
"""

from minipaddle.engine.eager.control_flow import cond, is_static
from minipaddle.engine.jit.journal import variables


def if_else(test, then, else_, live_out=(), local=(), jumps=False):
    """Run `then` or `else_`, or both into a program; leave what they bind in the variables."""
    if not is_static(test):
        if test:
            then()
        elif else_ is not None:
            else_()
        return
    kept = variables(live_out, then, else_)
    every = kept + variables(local, then, else_)
    before = [variable.get() for variable in every]

    def side(block):
        if block is not None:
            block()
        after = [variable.get() for variable in kept]
        for variable, value in zip(every, before):
            variable.set(value)  # as if this side had never run
        return after

    results = cond(test, lambda: side(then), lambda: side(else_))
    for variable, value in zip(kept, results):
        variable.set(value)
