"""Converters beyond the book's. Importing this puts them among the engine's, each at its place."""

from ...engine.jit.converters import insert
from ...engine.jit.converters.attributes import writes
from ...engine.jit.converters.calls import calls
from ...engine.jit.converters.choices import conditional
from ...engine.jit.converters.jumps import jumps
from .assertions import assertions, size_checks
from .comparisons import chains, membership
from .comprehensions import comprehensions, repetitions
from .matches import matches
from .subscripts import subscripts
from .supers import supers
from .texts import texts
from .tries import tries
from .walrus import walrus

insert(matches, before=jumps)  # match y: case 1: A    if y == 1: A
insert(size_checks, before=jumps)  # assert a == b      assert _jst.must_equal(a, b)
insert(supers, before=writes)  # super()               super(__class__, self)
insert(tries, before=writes)  # try: A                try: with _jst.trying(…): A
insert(assertions, before=conditional)  # assert test, text     _jst.assert_(test, lambda: text)
insert(chains, before=calls)  # a < b < c             _jst.chain(a, "<", lambda: b, …)
insert(membership, before=calls)  # a in b                _jst.in_(a, b)
insert(texts, before=calls)  # f"a {x}"              _jst.text("a ", (x, -1, ""))
insert(subscripts, before=calls)  # x[i]                  _jst.item(x, i)
insert(comprehensions, before=calls)  # [f(x) for x in y]   _jst.collect(y, lambda z: …)
insert(repetitions, before=calls)  # [x] * n              _jst.repeat([x], n)
insert(walrus)  # y := x, in a lambda   _jst_set_y(x)
