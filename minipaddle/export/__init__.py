"""Models without Python: C libraries, which programs in C++ may use as Paddle's predictors, and
WebAssembly modules.

Measured once on one thread of a busy machine with AVX2 (`--processor x86-64-v3`, gcc 12), and in
wasmtime 50. Sizes in bytes, times in µs; `./example --time` measures yours.

| C                 |   code |    weights | load, init | first run |   best |
|-------------------|-------:|-----------:|-----------:|----------:|-------:|
| LeNet             | 10,520 |    246,720 |        350 |        48 |     19 |
| LeNet of int8     | 43,664 |     63,808 |        210 |       193 |     84 |
| GPT, 4 × 128, 64  | 29,964 |  3,289,152 |      7,000 |    15,000 |  1,780 |
| ResNet-18, 224²   | 35,748 | 46,738,944 |     92,000 |    78,000 | 70,000 |

| WebAssembly       |     module |   init | first run |    best |
|-------------------|-----------:|-------:|----------:|--------:|
| LeNet             |    257,584 |    390 |       154 |      61 |
| LeNet of int8     |     74,757 |    300 |       242 |     185 |
| GPT, 4 × 128, 64  |  3,317,372 |  2,600 |    10,900 |   6,300 |
| ResNet-18, 224²   | 46,779,778 | 92,000 |   495,000 | 334,000 |

The static program of LeNet has 42,832 bytes with the C library of musl, which zig links.
"""
