"""A formula as lines of C: what is used twice is computed once.

A formula is a graph of values. Each is a `Text` with

- `template`, its C text with a hole for each argument, such as `({0} * {1})`, `({} + {})`,
  `expf({})`. A hole may occur twice: `({0} < 0 ? -{0} : {0})`. A value without arguments, such as
  `x[i]` or `0.5f`, *is* its template, and may contain other braces;
- `args`, the values that fill the holes, and `dtype`.

Two arguments are the same value only if they are the same object (`is`); compare with `id(x)`, for
a Text has no hash.

Write `statements(roots, fresh, apart=False)`. Return two lists of strings: lines of C, and after
them an expression for each of the `roots`, in order. A line is `const TYPE NAME = TEXT;` with
`C_NAMES[x.dtype]`, a name from `fresh()` (call it once for each line), and the value's text without
the parentheses around it (`bare(text)`). Which values get a line?

- one with arguments that is needed more than once, by others or as a root, or whose text is longer
  than LONG characters. A hole that occurs twice needs its value twice;
- with `apart`, every root counts as needed twice, and what reads memory (there is a `[` in its
  text) can get a line also without arguments. So everything is read before the caller writes
  anything: a result may lie where an input was.

Wherever a value with a line is needed, only its name stands. A line comes after those it uses; and
for each value the lines of its arguments come in the order of the arguments.

    v = x[i] * x[i];  roots: [v + expf(v)]
    ->  ["const float t = x[i] * x[i];"],  ["(t + expf(t))"]

The engine writes every loop nest with it, in C and in CUDA C.
Source: values with numbers, Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 6.1.
"""

from minipaddle.engine.codegen.scalar import C_NAMES, LONG, bare


def statements(roots, fresh, apart=False):
    """(lines of C, an expression for each root)."""
    raise NotImplementedError
