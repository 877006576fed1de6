"""Apply asynchronously: a step for the rows that were pushed, and for no others.

A worker pushed gradients of some rows. The server takes a step of the optimizer with them at once,
whatever other workers do. Write `apply(table, ids, gradients, lr)`; it returns nothing:

- `ids` are n different rows, int64 [n]; `gradients` are [n, width]; `lr` is the learning rate;
- `table.places(ids)` gives the place of each row in the arrays of the table, int64 [n]. It makes
  the rows that are not there yet, and then the table may have *new, larger arrays*;
- `table.arrays` is a list: first the values, [places, width], then the states of the optimizer,
  such as Adam's averages, [places, width] or [places, 1] each;
- `table.rule(gradients, lr, values, *states)` takes one step for rows alone: arrays of n rows. It
  returns a list of the new values and states, in this order, and changes nothing.

What it returns has to be in `table.arrays` afterwards, at the places of these rows. All other rows
stay as they are: their states, too, as if the step had not been.

Source: Dean et al., "Large scale distributed deep networks", 2012.
"""


def apply(table, ids, gradients, lr) -> None:
    """Change the rows `ids` by one step of the optimizer."""
    raise NotImplementedError
