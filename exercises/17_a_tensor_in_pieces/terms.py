"""Terms: when a sum must be added up, and when it may stay in pieces.

After a product each rank may have a term of a sum. To add the terms up costs an all-reduce. An
operator that is linear needs none: the double of a sum is the sum of the doubles, so each rank
doubles its term, and has a term again. The GELU of a sum is not the sum of GELUs; there the terms
must be joined first. Write `candidates(rule, specs, placed, axis)`: all that an axis of the mesh
may do, of which the cheapest is chosen later. It is a list of

- `Letter`s, which cut a letter: the list `letters_to_cut(rule, specs, placed, axis)`;
- None: nothing is cut and nothing is a term, all inputs lie whole along that axis;
- `Terms(inputs, op)`, which keep terms: the inputs with these numbers (a frozenset) stay terms.

`rule.linear` are the sets of inputs in which the operator is linear *together*, as frozensets of
their numbers: {0, 1} for an addition, {0} and {1} for a product. Terms may stay in such a set if
all inputs of it are terms along our axis of the mesh, combined in the same way, "sum" or "avg".
(Maxima are not linear: the double of a maximum is one only as long as nobody doubles by -2.)

- `placed` has for each input its placements, one for each axis of the mesh, or None for a Python
  number, which is no term. `placed[k][axis]` is how input k lies along our axis;
  `p.is_partial()`: it is a term, combined by `p.op`.
- The order decides between plans of equal cost. It is: letters, None, terms in the order of
  `rule.linear`. Only for an operator with one input that has terms to keep it is: these terms,
  None. For who comes next may add more terms, or scatter them, before they are joined.

    an addition of two terms: None, Terms({0, 1}, "sum"); of a term and a whole tensor: None
    a transpose of a term: Terms({0}, "sum"), None; a GELU of a term: None

Source: Xu et al., "GSPMD", 2021, section 3.2; Paddle API `paddle.distributed.Partial`.
"""

from minipaddle.engine.sharding.propagate import Terms, letters_to_cut


def candidates(rule, specs, placed, axis) -> list:
    """What an axis of the mesh may do."""
    raise NotImplementedError
