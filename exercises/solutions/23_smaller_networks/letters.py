"""A channel, everywhere: follow the letters.

If a channel goes from one weight it goes from everything it meets: the bias, the norm, what is
added to it, the next layer's weights. A channel is a *label*, a whole number from 1 on; 0 is none.
Each axis of each value has an array of labels, one for each row. The engine writes labels to one
axis, and calls you for operator after operator until nothing changes. Write two functions.

`spread_letters(channels, record, inputs, results)` brings the labels at one operator into
agreement. `inputs` and `results` are its values (an input that is only a number is None).

- `channels.axes.rules(record)` is the sharding rule of the operator, or None. `rule.inputs` has an
  entry for each input, `rule.results` for each result. It has for each axis None, or a letter with
  a unit (`axis.letter`, `axis.unit`).
- Axes with the same letter are the same axis: their labels have to agree. An axis with unit u has
  u rows for each *block*, row 0 to u - 1 are block 0, and so on. Axes with one letter have as many
  blocks; all rows of a block have the same label then, here and there.
- `channels.of(value, d)` are the labels along axis d of a value, an array, or None if there are
  none. `channels.join(a, b)` gives the labels of two arrays as one: that of either where the other
  has 0; where both have one, the two are *the same label* from now on. `channels.set(value, d,
  labels)` writes labels: of every axis that has the letter. A letter without any labels is left
  alone.
- Three times there is nothing to be done: the operator has no rule; an axis without a letter has
  labels (it is needed whole); or a letter with labels is among `rule.terms`, so the operator
  combines its rows to one value, and it is no product (`is_product(record, rule, letter)`). Then
  `raise refuse(record, why)`, with a reason in words.

`find_removed_rows(channels, labels)` says what goes when the channels with these labels go:
{(value, axis): an array of bool, True for each row that goes}, for everything in
`channels.labels`, a dict {(value, axis): labels}. These labels may be older than a join;
`channels.root(labels)` gives today's.

Source: the propagation of Xu et al., "GSPMD", 2021; for pruning, Fang et al., "DepGraph", 2023.
"""

import numpy as np

from minipaddle.slim.channels import is_product, refuse


def spread_letters(channels, record, inputs, results):
    """Axes with one letter get one array of labels."""
    rule = channels.axes.rules(record)
    if rule is None:
        raise refuse(record, "nobody said which of its axes are one")
    places = {}
    for value, axes in zip((*inputs, *results), (*rule.inputs, *rule.results), strict=True):
        if value is None:
            continue
        for d, axis in enumerate(axes):
            if axis is not None:
                places.setdefault(axis.letter, []).append((value, d, axis.unit))
            elif channels.of(value, d) is not None:
                raise refuse(record, f"it needs axis {d} whole")
    for letter, own in places.items():
        columns = []  # each has a label for each block
        for value, d, unit in own:
            labels = channels.of(value, d)
            if labels is not None:
                columns += list(labels.reshape(-1, unit).T)
        if not columns:
            continue
        if letter in rule.terms and not is_product(record, rule, letter):
            raise refuse(record, "it makes one value of all of them")
        blocks = columns[0]
        for column in columns[1:]:
            blocks = channels.join(blocks, column)
        for value, d, unit in own:
            channels.set(value, d, np.repeat(blocks, unit))


def find_removed_rows(channels, labels):
    """The rows that go, of every axis of every value."""
    return {
        place: np.isin(channels.root(found), labels) for place, found in channels.labels.items()
    }
