"""`if`, `elif`, `else`, conditional expressions: on tensors and on Python's values."""

import minipaddle as paddle
from tests.jit.examples import T, example

UP, DOWN = T([1.0, 2.0]), T([-1.0, -2.0])


@example((UP,), (DOWN,))
def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@example((UP,), (DOWN,))
def if_without_else(x):
    if x.sum() > 0:
        x = x * 2
    return x


@example((UP, 1), (UP, -1), (DOWN, 1))
def if_on_python(x, n):
    if n > 0:
        x = x + n
    else:
        x = x - n
    return x


@example((T([0.5]),), (T([5.0]),), (T([50.0]),), (T([-5.0]),))
def elif_chain(x):
    if x < 0:
        y = -x
    elif x < 1:
        y = x * 10
    elif x < 10:
        y = x + 100
    else:
        y = x * 0
    return y


@example((UP, 3), (DOWN, 3), (UP, 0), (DOWN, 0))
def tensor_in_python_if(x, n):
    if n > 1:
        if x.sum() > 0:
            x = x + 1
        else:
            x = x - 1
    return x


@example((UP, 3), (DOWN, 3), (UP, 0), (DOWN, 0))
def python_in_tensor_if(x, n):
    y = x
    if x.sum() > 0:
        if n > 1:
            y = y + 1
        else:
            y = y * 3
    return y


@example((UP,), (DOWN,), (T([30.0, -1.0]),))
def nested_ifs(x):
    s = x.sum()
    if s > 0:
        if s > 10:
            y = x * 2
        else:
            y = x * 3
        z = y + 1
    else:
        y = x
        z = y - 1
    return y, z


@example((UP,), (DOWN,))
def conditional_expression(x):
    return x + 1 if x.sum() > 0 else x - 1


@example((T([1.0]),), (T([7.0]),), (T([-7.0]),))
def nested_conditional_expression(x):
    return x * 2 if x > 5 else (x * 3 if x > 0 else -x)


@example((UP,), (DOWN,))
def condition_is_not_boolean(x):
    if x.sum():
        x = x + 1
    return x


@example((T(0.0),), (T(2.0),))
def condition_is_a_float(x):
    return x + 1 if x else x - 1


@example((UP,), (DOWN,))
def numbers_that_differ(x):
    if x.sum() > 0:
        scale = 2.0
    else:
        scale = 3.0
    return x * scale


@example((UP,), (DOWN,))
def numbers_that_agree(x):
    if x.sum() > 0:
        axis = 0
        x = x * 2
    else:
        axis = 0
    return x.sum(axis=axis)


@example((T(3.0),), (T(-3.0),))
def tensor_or_number(x):
    if x > 0:
        y = x * 2
    else:
        y = 0.0
    return y + 1


@example((UP,), (DOWN,))
def text_that_agrees(x):
    if x.sum() > 0:
        mode = "sum"
        x = x + 1
    else:
        mode = "sum"
    return x.sum() if mode == "sum" else x.mean()


@example((UP,), (DOWN,), refused="mode.*not the same kind of value")
def text_that_differs(x):
    if x.sum() > 0:
        mode = "sum"
    else:
        mode = "mean"
    return x.sum() if mode == "sum" else x.mean()


@example((UP,), (DOWN,))
def temporary_in_one_branch(x):
    if x.sum() > 0:
        t = x * 2
        y = t + 1
    else:
        y = x
    return y


@example((UP,), (DOWN,))
def temporaries_of_different_shapes(x):
    if x.sum() > 0:
        t = x * 2
        y = t.sum()
    else:
        t = paddle.concat([x, x])
        y = t.mean()
    return y


@example((UP,), refused="`y` may be undefined here.*`else` side")
def undefined_in_one_branch(x):
    if x.sum() > 0:
        y = x
    return y


@example((UP,), (DOWN,), refused="`y` is not the same kind")
def none_and_tensor(x):
    y = None
    if x.sum() > 0:
        y = x
    return x if y is None else y


@example((UP,), (DOWN,))
def none_stays_none(x):
    y = None
    if x.sum() > 0:
        x = x + 1
    return x if y is None else y


@example((UP,), (DOWN,))
def shapes_that_differ(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y


@example((UP,), (DOWN,))
def in_place_in_a_branch(x):
    y = x * 1
    if x.sum() > 0:
        y.add_(x)
    return y


@example((UP,), (DOWN,))
def item_in_a_branch(x):
    y = x * 1
    if x.sum() > 0:
        y[0] = 7.0
    else:
        y[1:] = y[:1] + 1
    return y


@example((UP, 1), (UP, 2), (UP, "a"), (UP, [1, 2]), (UP, {"k": 4}), (UP, None))
def match_on_python(x, what):
    match what:
        case 1:
            y = x + 1
        case int(n) if n > 1:
            y = x * n
        case [a, *rest]:
            y = x + a + len(rest)
        case {"k": value, **others}:
            y = x * value + len(others)
        case None:
            y = -x
        case _:
            y = x
    return y


@example((UP, 1), (DOWN, 1), (UP, 2), (DOWN, 2))
def tensor_if_in_match(x, what):
    match what:
        case 1:
            if x.sum() > 0:
                x = x + 1
        case other:
            if x.sum() > 0:
                x = x * other
            else:
                x = x - other
    return x


@example((UP,), (DOWN,))
def pass_in_both(x):
    if x.sum() > 0:
        pass
    else:
        pass
    return x


@example((UP,), (DOWN,))
def only_python_effects(x):
    seen = []
    if x.shape[0] == 2:
        seen.append("two")
    return x, len(seen)


@example((UP,), (DOWN,))
def swap_in_a_branch(x):
    a, b = x, x + 1
    if x.sum() > 0:
        a, b = b, a
    return a - 2 * b


@example((UP,), (DOWN,))
def delete_in_a_branch(x):
    t = x + 1
    if x.sum() > 0:
        y = t * 2
        del t
    else:
        y = t
    return y


@example((T([1.0, 2.0, 3.0]),), (T([-9.0, 2.0, 3.0]),))
def many_names(x):
    a = b = c = x.sum()
    if a > 0:
        a = a + 1
        b, c = c * 2, b * 3
    else:
        a, (b, *rest) = b, (c, a, b)
        c = c + len(rest)
    return a, b, c


@example((UP,), (DOWN,))
def if_in_an_expression_statement(x):
    out = []
    out.append(x + 1) if x.shape == [2] else out.append(x)
    return out


@example((UP, True), (DOWN, True), (UP, False))
def python_flag_and_tensor(x, flag):
    if flag and x.sum() > 0:
        x = x * 2
    elif not flag:
        x = x * 3
    return x


@example((UP,), (DOWN,))
def gradients_inside(x):
    y = x * x
    if x.sum() > 0:
        y = y * x
    (g,) = paddle.grad(y.sum(), [x])
    return g


@example((UP,), (DOWN,))
def stop_gradient_inside(x):
    y = x * 2
    y.stop_gradient = True
    if x.sum() > 0:
        return y + x
    return y * x


@example((T([[1.0, 2.0], [3.0, 4.0]]),), (T([[-1.0, -2.0], [-3.0, -4.0]]),))
def branch_of_a_row(x):
    rows = [row * 2 if row.sum() > 0 else row for row in x]
    return paddle.stack(rows)


@example((UP, 0), (UP, 3))
def raise_on_python(x, n):
    if n > 5:
        raise ValueError("too large")
    return x + n


@example((UP,))
def raise_on_tensor(x):
    if x.sum() < 0:
        raise ValueError("negative")
    if x.sum() > 0:
        return x * 2
    else:
        raise KeyError("zero")


@example((UP,), (DOWN,))
def defined_before_and_in_one_branch(x):
    y = x * 0
    if x.sum() > 0:
        y = x
    return y + 1


@example((T([3.0]), 3), (T([-3.0]), 3))
def python_value_becomes_tensor(x, n):
    if x > 0:
        n = n + 1
    return x * n


@example((UP,), (DOWN,))
def same_object_in_both(x):
    items = [x]
    if x.sum() > 0:
        kept = items
    else:
        kept = items
    return kept[0] + 1
