"""The location map: from an error in converted code to your lines.

The converted function is compiled with the name of your file, and its nodes stand at the lines and
columns of your text. So every instruction knows its place; what is left is to find it, and to leave
out what is not yours. Write three functions:

- `place(code, offset)`: the place of an instruction of a code object: (line, start, end). A code
  object is compiled Python, one for each function, and `offset` counts its bytes; an instruction
  has two. `code.co_positions()` yields for each instruction (line, last line, column, end column)
  of the expression that it computes. If the expression goes on to another line, columns say
  nothing: answer (line, None, None).
- `block_of(outer, inner)`: is the function with the code `inner` defined inside the one with the
  code `outer`, at any depth? The code of a `def` is among the `co_consts` of the code in which it
  stands, which also has numbers and texts (`types.CodeType` is the class of code objects). The
  converter makes such functions: the sides of an `if`, the body of a loop.
- `user_lines(traceback)`: the user's lines, outermost first, and how many frames are left out.
  A traceback is a chain: `.tb_frame` is a frame (a call that was going on), `.tb_frame.f_code` its
  code; `.tb_lasti` is the offset at which the error passed through it, and `.tb_next` is the
  traceback one call further in, None at the end. (`f_lasti` is not the same: it says where a frame
  is now, and one that has caught the error has gone on.)
    - Left out, and counted, are the frames of this package (`inside(frame)`), and those of code
      that has no file: its `co_filename` is "<string>".
    - The others become `FrameLine(code, line, start, end)`.
    - But a function appears once, however many blocks were made of it. Converted code calls its
      blocks through the package. So if a frame comes directly after frames that were left out,
      and is a block of the last line found, it takes that line's place. (What you have defined
      inside a function yourself is called by it directly, and both lines stay.)

    def f(x):                           Traceback: f line 2 → if_else (package) → side of f, line 3
        if x > 0:
            y = x / "two"               user_lines: f line 3; 1 frame left out
        return y

The line of a record that fails while a program runs is found by your `place` too: each record keeps
the code and the offset of the instruction that made it.

Source: the source maps of compilers; PEP 657 for columns in tracebacks.
"""

from types import CodeType

from minipaddle.engine.core.errors import inside
from minipaddle.engine.jit.user_lines import FrameLine


def place(code, offset):
    """The line of an instruction, and the columns of its expression if it is on one line."""
    line, last, start, end = list(code.co_positions())[offset // 2]
    if last != line:
        return line, None, None
    return line, start, end


def block_of(outer, inner):
    """Is a function defined inside another one, at any depth?"""
    for x in outer.co_consts:
        if isinstance(x, CodeType) and (x == inner or block_of(x, inner)):
            return True
    return False


def user_lines(traceback):
    """The user's lines that lead to an error, and how many frames are not the user's."""
    lines, left_out, directly_after = [], 0, False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if inside(traceback.tb_frame) or code.co_filename == "<string>":
            left_out += 1
            directly_after = True
        else:
            if lines and directly_after and block_of(lines[-1].code, code):
                lines.pop()  # the line in the block says more than the head of the `if`
            lines.append(FrameLine(code, *place(code, traceback.tb_lasti)))
            directly_after = False
        traceback = traceback.tb_next
    return lines, left_out
