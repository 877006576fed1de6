"""`break`, `continue`, early `return`, anywhere."""

import minipaddle as paddle
from tests.jit.examples import I, T, example

X, Y = T([1.0, 2.0]), T([-1.0, -2.0])


@example((X,), (Y,))
def early_return(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@example((X,), (Y,))
def return_in_both(x):
    if x.sum() > 0:
        return x * 2
    else:
        return x - 1


@example((X,), (Y,))
def return_after_work(x):
    y = x + 1
    if y.sum() > 0:
        z = y * 2
        return z
    y = y * 3
    z = y - 1
    return z + x


@example((T(0.5),), (T(5.0),), (T(50.0),), (T(-1.0),))
def several_returns(x):
    if x < 0:
        return x * 0
    if x < 1:
        return x
    elif x < 10:
        if x > 4:
            return x + 1000
        x = x + 1
    return x * 2


@example((X, 1), (X, -1), (Y, 1))
def return_on_python(x, n):
    if n > 0:
        return x + n
    x = x * 2
    return x


@example((T(0.0),), (T(9.0),), (T(20.0),))
def return_from_tensor_while(x):
    while x < 10:
        x = x + 1
        if x == 5:
            return x * 100
    return x


@example((I(5), T(0.0)), (I(2), T(0.0)), (I(0), T(1.0)))
def return_from_tensor_range(n, x):
    for i in range(n):
        x = x + i
        if x > 2:
            return x * 10
    return x - 1


@example((T([1.0, 5.0, 2.0]),), (T([1.0, 1.0, 1.0]),))
def return_from_rows(x):
    for v in x:
        if v > 3:
            return v
    return x.sum()


@example((X, 5), (X, 1))
def return_from_python_loop(x, n):
    for k in range(n):
        if k == 2:
            return x * 10
        x = x + k
    return x


@example((I(3), I(4), T(0.0)), (I(1), I(1), T(0.0)))
def return_from_nested_loops(n, m, x):
    for i in range(n):
        for j in range(m):
            x = x + i + j
            if x > 3:
                return x * 10
        x = x + 100
    return x


@example((T(0.0),), (T(20.0),))
def break_in_tensor_while(x):
    while x < 10:
        x = x + 3
        if x > 5:
            break
        x = x - 1
    return x


@example((I(6), T(0.0)), (I(0), T(0.0)))
def continue_in_tensor_range(n, x):
    for i in range(n):
        if i == 2:
            continue
        x = x * 2 + i
    return x


@example((I(9), T(0.0)), (I(3), T(0.0)))
def break_and_continue(n, x):
    for i in range(n):
        if i % 2 == 0:
            continue
        if x > 10:
            break
        x = x + i * 2
    return x


@example((X, 6))
def python_break_and_continue(x, n):
    for k in range(n):
        if k == 1:
            continue
        if k == 4:
            break
        x = x * 2 + k
    return x


@example((T(0.0), T(0.0)), (T(9.0), T(1.0)))
def break_from_inner_loop(x, y):
    while x < 4:
        while y < 10:
            y = y + x + 1
            if y > 7:
                break
        else:
            y = y - 2
        x = x + 1
        if y > 50:
            break
    return x, y


@example((T(0.0),))
def break_in_else_of_inner(x):
    while x < 20:
        for k in range(3):
            x = x + k
        else:
            if x > 8:
                break
        x = x + 1
    return x


@example((T(3.0),), (T(-3.0),))
def continue_under_nested_ifs(x):
    s = x * 0
    for k in range(5):
        if x > 0:
            if k == 2:
                continue
            s = s + k
        else:
            if k % 2:
                continue
            s = s - k
        s = s * 2
    return s


@example((X, 3), (X, 0))
def return_in_with(x, n):
    with paddle.no_grad():
        if n > 1:
            return x * 2
        x = x + 1
    return x


@example((X,), (Y,))
def return_in_with_on_tensor(x):
    with paddle.no_grad():
        if x.sum() > 0:
            return x * 2
        x = x + 1
    return x


@example((X, "1"), (X, "a"))
def return_in_try(x, text):
    try:
        n = int(text)
        return x * n
    except ValueError:
        x = x - 1
    finally:
        x = x + 100
    return x


@example((X, [1, 0, 2]), (X, [1, 2]))
def continue_in_try(x, numbers):
    seen = []
    for n in numbers:
        try:
            if n == 2:
                continue
            x = x / n if n else x
            seen.append(1 // n)
        except ZeroDivisionError:
            seen.append("zero")
            continue
        finally:
            seen.append("finally")
        seen.append(n)
    return x, seen


@example((X, 0), (X, 1), (X, 2))
def return_in_try_else(x, n):
    try:
        if n == 1:
            return x
        y = 1 / n
    except ZeroDivisionError:
        return x - 1
    else:
        return x * y
    return x + 50


@example((X, 1), (X, 2), (X, 3))
def return_in_match(x, n):
    match n:
        case 1:
            return x + 1
        case 2:
            x = x * 2
        case _:
            return x
    return x - 7


@example((X, 1), (Y, 1), (X, 2), (Y, 2))
def return_in_match_on_tensor(x, n):
    match n:
        case 1:
            if x.sum() > 0:
                return x + 1
        case _:
            return x
    return x - 7


@example((X,), (Y,))
def returns_a_tuple(x):
    if x.sum() > 0:
        return x, x + 1
    return x - 1, x


@example((X,), (Y,))
def returns_a_dict(x):
    if x.sum() > 0:
        return {"a": x, "n": 2}
    return {"a": x - 1, "n": 2}


@example((X,), (Y,), refused="what the function returns.*not the same kind")
def returns_different_structures(x):
    if x.sum() > 0:
        return x
    return x, x


@example((X,), (Y,), refused="what the function returns.*not the same kind")
def returns_nothing_sometimes(x):
    if x.sum() > 0:
        return x


@example((X,), (Y,))
def returns_numbers(x):
    if x.sum() > 0:
        return 1.0
    return 2.0


@example((X,))
def returns_nothing(x):
    if x.sum() > 0:
        x = x + 1


@example((X,))
def bare_return(x):
    for k in range(3):
        if k == 1:
            return


@example((X, 3), (X, -3))
def return_or_raise(x, n):
    if n > 0:
        return x * n
    elif n < -5:
        raise ValueError(n)
    else:
        return x


@example((X, 1), (X, 2))
def code_after_return(x, n):
    if n == 1:
        return x
        x = x * 100
    return x + 1
    x = x * 1000


@example((X, 7))
def while_true_with_python_break(x, n):
    while True:
        n -= 1
        if n % 2:
            continue
        x = x + n
        if n < 3:
            break
    return x


@example((T(1.0), T(10.0)), (T(10.0), T(1.0)), (T(1.0), T(1.0)))
def returns_in_all_ways(x, y):
    if x < y:
        return y - x
    elif x > y:
        return x - y
    else:
        return x * 0 - 1


@example((X, 2), (X, 5))
def for_else_return(x, n):
    for k in range(3):
        if k == n:
            return x * k
    else:
        return x - 1


@example((I(5), X))
def continue_defines_later(n, x):
    for i in range(n):
        if i < 2:
            continue
        y = x * i
    return y
