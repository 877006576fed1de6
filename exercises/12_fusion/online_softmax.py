"""The online softmax: what is known of a row grows block by block.

A softmax needs the largest score of a row before it can add up a single power, so it seems that the
whole row must be there at once. It need not. The kernel of attention computes a block of scores,
some hundred columns, and uses it at once. So far it knows of each row the largest score, and with
it sums of powers that were measured from that score: the sum of the weights, and the weighted sums
of the values (one for each column of the result). Then a block comes whose largest score is larger,
and all sums are too large by one and the same factor. Write two functions:

- `fold(m, before, block)`: `before` is the largest score of all earlier blocks (-inf if there was
  none), `block` that of the new one. Return three values:
    - the largest score of both;
    - the shift, which the kernel subtracts from the scores of the block before it calls exp: the
      largest score of both. But where that is -inf, since all columns so far are hidden by a mask,
      0: the difference of -inf and -inf is no number;
    - the factor by which the sums so far are multiplied. They are sums of exp(score - before), and
      are to be sums of exp(score - shift). If there was no score, it is 0.
- `add(total, factor, part)`: one of the sums after the block, of which `part` is its own.

`m` is the array module: NumPy when you try it out. In the engine it writes C, and `before` and
`block` are names of variables. So use `m.maximum`, `m.where` and `m.exp`, operators, and numbers;
no `if`.

    fold(np, 1.0, 3.0)        -> 3.0, 3.0, exp(-2)
    fold(np, 3.0, 1.0)        -> 3.0, 3.0, 1.0
    fold(np, -np.inf, 2.0)    -> 2.0, 2.0, 0.0

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao,
"FlashAttention-2", 2023, algorithm 1.
"""

from math import inf


def fold(m, before, block) -> tuple:
    """The largest score, the shift, and the factor of the sums so far."""
    raise NotImplementedError


def add(total, factor, part):
    """A sum after one more block."""
    raise NotImplementedError
