"""The integer dot product: sums of products of bytes, exact.

Write `matmul_whole(m, x, y)`, the product of two arrays of int8, as the engine's interpreter
computes it: x @ y in int32, exact to the last bit.

- `x` [..., K] and `y` [..., K, N] are arrays of int8; `m` is their array module (numpy, or cupy on
  a GPU). Axes before the last ones broadcast, as with `@`. K may be 0.
- A product of two int8 has up to 2^14, and no int8 holds it; a sum of 65536 of them fits an int32.
- int32 @ int32 is right, but slow: NumPy multiplies matrices of floats many times faster. A float32
  holds every whole number up to 2^24, and no sum of `TERMS` products is larger. So cut K into
  pieces of at most TERMS, multiply each as float32, and add up in int32.

    [[100, 100]] @ [[100], [100]]  ->  [[20000]]

Source: the sums of `vpdpbusd` in Intel's AVX-512 VNNI are these; Jacob et al., 2018, section 2.3.
"""

TERMS = 1024


def matmul_whole(m, x, y):
    """x @ y of int8 arrays, exact, in int32."""
    total = 0
    for k in range(0, max(x.shape[-1], 1), TERMS):
        a = x[..., k : k + TERMS].astype("float32")
        b = y[..., k : k + TERMS, :].astype("float32")
        total = total + m.matmul(a, b).astype("int32")
    return total
