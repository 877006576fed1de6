"""May a result be written over its input?

If nobody needs the input any more, a result that takes over its memory costs none. Two questions
decide whether it may: one about the kernel (does it read a place before it writes it, and never
after?) and one about the plan (does nobody else need the old value?). Write three functions.

`in_place(self)` is a method of a loop nest. Return a list of pairs (k, input): output number k may
be written over `input`.

- `self.outputs` is a list of (record, node, flat): what is stored, its value, and the index at
  which it is stored. `self.once_a_row(node, flat)` says whether that is once for each row.
- `self.reading()` yields (stage, row, load) for each read of memory, wherever it is computed:
  `self.loaded_input(load)` is the input (a record), `load.index` the index, `load.guard` the
  conditions under which it is read at all, () if there are none. `stage` and `node.stage` say how
  many folds come before.
- Allowed if input and result have the same number of elements (`record.spec.size`) and bytes of an
  element (`record.dtype.itemsize`); and if *every* read of the input is without conditions, at
  exactly the index at which the output is stored, and not later. In a row, stage comes after stage;
  within a stage, what is stored or read once a row comes before the loop along the row.
- An input that is never read is not in the list. The order is that of the outputs (k).

`may_replace(self, new, old)` and `writes_over(self, new, old)` are methods of a planner. `new` and
`old` are values, pairs (record, k). May `new` be made where `old` lies?

- `self.lives[value]` is a Life (start, end, nbytes): both need the same bytes.
- `self.reads` is a dict: for each value, when it is read for the last time. A value that is never
  read is not in it, and may be replaced. Another one may if its last reader has run before `new` is
  made (`start`), or is the very record that makes it and `self.writes_over(new, old)`.
- `writes_over`: with (record, k) = new, `self.inplace(record)` are the pairs (k, j): the kernel may
  write result k over input j. `old` may stand in several places of `record.inputs`; each of them
  must be allowed, and there must be one. `self.value(r)` is the value that an input r holds.

    y = x + 1              ->  yes            y = x + transpose(x)   ->  no
    y = softmax(x)         ->  yes            sum of rows over x     ->  no, another size

Source: Cytron and Gershbein, "Efficient accommodation of may-alias information", 1993, for why one
asks about every read.
"""

from minipaddle.engine.passes.lifetimes import GIVEN


def in_place(self) -> list:
    """(output k, input): the output may be written over the input."""
    raise NotImplementedError


def may_replace(self, new, old) -> bool:
    """May a value be made where another lies?"""
    raise NotImplementedError


def writes_over(self, new, old) -> bool:
    """Does the kernel that makes `new` allow it to lie where its input `old` does?"""
    raise NotImplementedError
