"""Cache slots: which one a new text gets, and what it need not read.

A cache has a few slots, each for the keys and values of one text. A text that is finished leaves
its slot, but what it wrote stays there. A new prompt that begins the same way can start where the
two differ. Write two functions.

- `count_shared(held, prompt)`: both are lists of tokens. How many of the first tokens are equal,
  and so need no reading? The last token of the prompt is always read, for its scores say what comes
  next: at most `len(prompt) - 1`.
- `admit(scheduler)`: while a request waits and a slot is free, the first request that waits (take
  it out: `scheduler.waiting` is a deque) gets a slot.
  1. `scheduler.slots` is a list. A slot has a `number`, its place in the list, a `request` (None:
     it is free), and `held`, the tokens whose keys and values it holds.
  2. The request gets the free slot that shares most with its prompt; of equal ones, that with the
     least number.
  3. A busy slot may share more than any free one. Then the cache is copied, by the method `reorder`
     of `scheduler.decoder`. Its argument says for each slot the number of the slot whose text it
     holds from then on: all keep their own but the one that is given away. Without need nothing is
     copied.
  4. The slot gets its `request`; `held` is the part of the prompt that is shared, a list of its
     own, and `unread` the rest, a list, too. The request notes in `reused` how many tokens are
     shared.

    count_shared([1, 2, 3], [1, 2, 9])     ->  2
    count_shared([1, 2, 3], [1, 2, 3])     ->  2
    slots hold [5], [1, 2, 3] (busy), []; the prompt [1, 2, 9] comes
        ->  slot 0 gets it, reorder([1, 1, 2]), held [1, 2], unread [9]

Sources: Yu et al., "Orca", 2022; Kwon et al., "Efficient memory management for large language model
serving with PagedAttention", 2023, for shared prefixes.
"""


def count_shared(held, prompt):
    """How many tokens of a prompt need no reading."""
    raise NotImplementedError


def admit(scheduler):
    """Give free slots to requests that wait."""
    raise NotImplementedError
