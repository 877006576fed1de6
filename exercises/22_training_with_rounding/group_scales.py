"""Group scales: one for so many rows of each column.

With four bits even the weights of one output are too different for one scale. So cut the rows, the
inputs, into groups that follow each other, and give each group of each output its own. Write
`group_scales(x, group)`: the largest magnitudes in groups of `group` rows.

- `x` is a tensor [rows, columns] of floats. `rows` is a multiple of `group`, which is at least 1.
- The result is a tensor [rows / group, columns] in the dtype of x.
- It is traced: write it in tensor functions.

    [[1.0, 5.0], [-3.0, 0.0], [0.5, 0.5], [0.2, -7.0]], group = 2  ->  [[3.0, 5.0], [0.5, 7.0]]

Source: Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers", 2022; Paddle API `paddle.quantization.observers.GroupWiseWeightObserver`.
"""

import minipaddle as paddle


def group_scales(x, group):
    """The largest magnitude in each group of rows of each column."""
    raise NotImplementedError
