"""Programs in which some executor once did something else, as the fuzzers found and shrank them.

They run on the arrays of `tests.passes.programs.draw_arrays`, unless `GIVEN` names others.
"""

EFFECTS_OUT_OF_ORDER = """
program effects_out_of_order(x: float64[3], a: float64[]) {
  v1 = multiply(x, 2.0) : float64[3]
  v2 = show(v1, parts=('v', True,), sep=' ', end='\\n') : bool[]
  v3 = show(a, parts=(True,), sep=' ', end='\\n') : bool[]
  v4 = sort(x, axis=0, descending=False) : float64[3]
  v5 = multiply(v1, v4) : float64[3]
  return v5
}
"""

AN_EFFECT_BETWEEN_TWO_OF_ONE_GROUP = """
program an_effect_between_two_of_one_group(x: float64[3], p: bool[]) {
  v1 = multiply(x, 2.0) : float64[3]
  v2 = show(v1, parts=('v', True,), sep=' ', end='\\n') : bool[]
  v3 = cond(p, x, true=(a0: float64[3]) {
    v1 = show(a0, parts=(True,), sep=' ', end='\\n') : bool[]
    return a0
  }, false=(a0: float64[3]) {
    v1 = neg(a0) : float64[3]
    return v1
  }) : (float64[3])
  v4 = item(v3, k=0) : float64[3]
  v5 = multiply(v1, v4) : float64[3]
  return v5
}
"""

A_GROUP_THAT_NOBODY_NEEDS = """
program a_group_that_nobody_needs(x: float64[3]) {
  v1 = multiply(x, 2.0) : float64[3]
  v2 = add(v1, 1.0) : float64[3]
  v3 = tanh(x) : float64[3]
  return v3
}
"""

AN_OUTPUT_THAT_HELD_ANOTHER_DTYPE = """
program an_output_that_held_another_dtype(p: bool[]) {
  state generator: int64[2]
  v1 = cond(p, generator, true=(a0: int64[2]) {
    v1 = arange(start=0, step=1, size=3, dtype=int64) : int64[3]
    v2 = base_of(a0) : int64[]
    v3 = random_uniform(v1, v2, low=0, high=1, dtype=float64) : float64[3]
    return v3
  }, false=(a0: int64[2]) {
    v1 = full(shape=(3,), value=0.5, dtype=float64) : float64[3]
    return v1
  }) : (float64[3])
  v2 = item(v1, k=0) : float64[3]
  return v2
}
"""

A_SUM_OF_NO_PRODUCTS = """
program a_sum_of_no_products(
  x: float32[9, 0], y: float32[0, 17], z: float32[17, 0], w: float16[0, 17]
) {
  v1 = matmul(x, y) : float32[9, 17]
  v2 = transpose(z, perm=(1, 0,)) : float32[0, 17]
  v3 = matmul(x, v2) : float32[9, 17]
  v4 = exp(v3) : float32[9, 17]
  v5 = add(v1, v4) : float32[9, 17]
  v6 = cast(x, dtype=float16) : float16[9, 0]
  v7 = matmul(v6, w) : float16[9, 17]
  return v3, v5, v7
}
"""

A_TRANSPOSE_OF_NOTHING = """
program a_transpose_of_nothing(x: float32[4, 0], y: float32[0, 4]) {
  v1 = transpose(x, perm=(1, 0,)) : float32[0, 4]
  v2 = add(v1, y) : float32[0, 4]
  v3 = tanh(v2) : float32[0, 4]
  return v3
}
"""

NOTHING_MADE_AGAIN = """
program nothing_made_again(x: float32[0, 3], y: float32[3]) {
  v1 = multiply(x, x) : float32[0, 3]
  v2 = multiply(y, y) : float32[3]
  v3 = add(v1, v2) : float32[0, 3]
  return v3
}
"""

NOTHING_IN_A_STATE = """
program nothing_in_a_state(x: float32[3]) {
  state s: float64[0, 16]
  state t: float64[0]
  v1 = tanh(s) : float64[0, 16]
  v2 = add(x, 1.0) : float32[3]
  update s = v1
  update t = t
  return v2
}
"""

OPERANDS_OF_TWO_DTYPES = """
program operands_of_two_dtypes(
  x: float32[2, 5, 5, 3], g: float64[2, 5, 5, 6], a: float32[4, 3], b: float64[3, 5]
) {
  v1 = conv_last_weight_grad(
    x, g, kernel=(3, 3,), stride=(1, 1,), padding=((1, 1,), (1, 1,),), dilation=(1, 1,), groups=3
  ) : float64[3, 3, 1, 6]
  v2 = matmul(a, b) : float64[4, 5]
  v3 = tanh(v2) : float64[4, 5]
  return v1, v3
}
"""

MADE_AGAIN_AFTER_A_HALF = """
program made_again_after_a_half(x: float32[2, 3], y: bfloat16[17, 17]) {
  v1 = sqrt(x) : float32[2, 3]
  v2 = matmul(y, y) : bfloat16[17, 17]
  v3 = sum(v1, axis=(0,), keepdim=False) : float32[3]
  return v3, v2
}
"""

A_WAY_BACK_THROUGH_A_LATER_GROUP = """
program a_way_back_through_a_later_group(x: float32[8]) {
  v1 = multiply(x, 2.0) : float32[8]
  v2 = sort(v1, axis=0, descending=False) : float32[8]
  v3 = exp(x) : float32[8]
  v4 = sort(v3, axis=0, descending=False) : float32[8]
  v5 = tanh(v4) : float32[8]
  v6 = multiply(v5, v1) : float32[8]
  v7 = add(v3, v2) : float32[8]
  return v6, v7
}
"""

WHOLE_NUMBERS_OF_A_PRODUCT = """
program whole_numbers_of_a_product(x: float64[2, 2, 7], y: float64[7, 1], z: float64[7, 3]) {
  v1 = matmul(x, y) : float64[2, 2, 1]
  v2 = tanh(v1) : float64[2, 2, 1]
  v3 = multiply(v2, 7) : float64[2, 2, 1]
  v4 = cast(v3, dtype=int64) : int64[2, 2, 1]
  v5 = remainder(v4, 5) : int64[2, 2, 1]
  v6 = matmul(x, z) : float64[2, 2, 3]
  v7 = greater_than(v6, 0.5) : bool[2, 2, 3]
  v8 = cast(v6, dtype=int64) : int64[2, 2, 3]
  v9 = multiply(v6, 2.0) : float64[2, 2, 3]
  return v5, v7, v8, v9
}
"""

PIECES_IN_MERGED_LOOPS = """
program pieces_in_merged_loops(x: float32[4], y: float32[4], z: float32[2, 4]) {
  v1 = concat(x, y, axis=0) : float32[8]
  v2 = reshape(v1, shape=(2, 4,)) : float32[2, 4]
  v3 = multiply(v2, z) : float32[2, 4]
  v4 = tanh(v3) : float32[2, 4]
  return v4
}
"""

A_LOOK_BESIDE_WHAT_IS_WRITTEN = """
program a_look_beside_what_is_written(x: float64[8, 2]) {
  v1 = cumsum(x, reverse=False, axis=1) : float64[8, 2]
  v2 = remainder(v1, 1) : float64[8, 2]
  v3 = tanh(v2) : float64[8, 2]
  v4 = split(v1, sizes=(0, 8,), axis=0) : (float64[0, 2], float64[8, 2])
  v5 = item(v4, k=1) : float64[8, 2]
  v6 = stack(x, v5, v5, v3, axis=2) : float64[8, 2, 4]
  return v6
}
"""

A_PRODUCT_OVER_NOTHING = """
program a_product_over_nothing(x: float32[8, 8, 0], y: float32[0, 5]) {
  v1 = matmul(x, y) : float32[8, 8, 5]
  return v1
}
"""

REPEATED_AS_OFTEN_IN_A_BLOCK = """
program repeated_as_often_in_a_block(x: float32[8], y: float32[28, 8]) {
  v1 = multiply(x, 2.0) : float32[8]
  v2 = tile(v1, repeats=(28,)) : float32[224]
  v3 = reshape(v2, shape=(28, 8,)) : float32[28, 8]
  v4 = add(v3, y) : float32[28, 8]
  return v4
}
"""

A_GRADIENT_OF_ANOTHER_DTYPE = """
program a_gradient_of_another_dtype(
  g: float32[2, 3, 4], x: float64[2, 3, 8], y: float64[2, 3, 4]
) {
  v1 = max_pool_grad(g, x, y, windows=((2, 2, 0, 4,),)) : float32[2, 3, 8]
  return v1
}
"""

AN_AXIS_LESS_AFTER_A_CONVOLUTION = """
program an_axis_less_after_a_convolution(
  x: float32[1, 6, 5, 4], w: float32[12, 1, 1, 1], y: float32[1, 12, 4, 3]
) {
  v1 = conv(
    x, w, stride=(2, 2,), padding=((1, 1,), (1, 1,),), dilation=(1, 1,), groups=6
  ) : float32[1, 12, 4, 3]
  v2 = add(v1, y) : float32[1, 12, 4, 3]
  v3 = slice(v2, index=(-1,)) : float32[12, 4, 3]
  return v3
}
"""

WIDE_BESIDE_A_HALF = """
program wide_beside_a_half(
  g: float32[3, 2, 4], x: float32[3, 2, 4], w: float32[2, 4], mean: bfloat16[3, 1, 1],
  s: float32[3, 1, 1]
) {
  v1 = square(s) : float32[3, 1, 1]
  v2 = standardize_grad(
    g, x, w, mean, v1, axes=(1, 2,), epsilon=0.001, centered=True
  ) : float32[3, 2, 4]
  return v2
}
"""

NAMED_AS_FUNCTIONS = """
program named_as_functions(fmin: float64[8], expf: float32[8]) {
  v1 = fmin(fmin, 0.5) : float64[8]
  v2 = sort(v1, axis=0, descending=False) : float64[8]
  v3 = fmin(v2, fmin) : float64[8]
  v4 = exp(expf) : float32[8]
  return v3, v4
}
"""

WEIGHTS_ADDED_UP_IN_FLOAT32 = """
program weights_added_up_in_float32(x: bfloat16[8], w: bfloat16[8]) {
  v1 = histogram(x, w, bins=4, low=-1.0, high=1.0, density=True) : float32[4]
  v2 = reshape(v1, shape=(2, 2,)) : float32[2, 2]
  return v1, v2
}
"""

A_GRADIENT_THAT_IS_NO_NUMBER = """
program a_gradient_that_is_no_number(g: float32[1, 1, 2, 3], x: float32[1, 1, 3, 4]) {
  v1 = log(g) : float32[1, 1, 2, 3]
  v2 = max_pool(x, windows=((2, 1, 0, 2,), (2, 1, 0, 3,),)) : float32[1, 1, 2, 3]
  v3 = max_pool_grad(v1, x, v2, windows=((2, 1, 0, 2,), (2, 1, 0, 3,),)) : float32[1, 1, 3, 4]
  return v3
}
"""

A_PLACE_IN_NOTHING = """
program a_place_in_nothing(x: float32[0, 1], y: float32[1, 0]) {
  v1 = matmul(x, y) : float32[0, 0]
  v2 = reshape(v1, shape=(0,)) : float32[0]
  v3 = unslice(v2, shape=(1,), index=((None, 0, None,),)) : float32[1]
  return v3
}
"""

GIVEN: dict = {}
"""The arrays of a program, by its name."""
