"""Hooks: your own functions, called as the gradient passes.

`h.register_hook(f)` asks the walk to call `f` with the gradient of `h`, once it is complete. Write
`apply_hooks(hooks, g)`, which the walk calls for a record that has hooks:

- call the hooks in the order of the list, which is the order in which they were registered;
- a hook that returns None only looked: the gradient goes on as it was;
- what any other hook returns *replaces* the gradient, for the hooks after it and for the walk;
- return the gradient that goes on.

    hooks = [print, lambda g: g * 10, lambda g: g + 1],  g = 2   ->  21  (and 2 is printed)

Source: Paddle API `Tensor.register_hook`.
"""


def apply_hooks(hooks, g):
    """The gradient `g` after all `hooks` have seen it."""
    for hook in hooks:
        answer = hook(g)
        if answer is not None:  # not `if answer`: a gradient of zeros is an answer too
            g = answer
    return g
