"""Mixed bits: few where it hardly hurts.

Some layers can be rounded to two bits and nobody notices, others to four at best. You know for each
layer how much the loss rises if this layer alone is rounded, and you have a budget of bits for all
weights together. Write `choose_bits(rises, sizes, budget)`, which returns a list with a number of
bits for each layer.

- `rises[k]` is a dict {bits: rise of the loss} of layer k. The keys are the numbers of bits that it
  may have, in any order, at least one; layers may have different ones. A rise may be negative.
- `sizes[k]` is how many weights layer k has, at least 1. Together they take Σ bits · size.
- Begin with the most bits for all. As long as they take more than `budget`, one layer goes down to
  its next fewer bits: the one whose loss then rises least *for each bit of memory that it saves*.
  Of equals the first one.
- If no layer can go further down and it is still too much, raise ValueError.
- Leave what you are given as it is.

    rises = [{8: 0.0, 4: 0.1}, {8: 0.0, 4: 0.3}], sizes = [100, 100]
        budget = 1600  ->  [8, 8]
        budget = 1200  ->  [4, 8]

Source: Dong et al., "HAWQ: Hessian AWare Quantization of Neural Networks with Mixed-Precision",
2019, which measures by second derivatives; here the loss itself is measured.
"""


def choose_bits(rises, sizes, budget):
    """The number of bits for each layer."""
    raise NotImplementedError
