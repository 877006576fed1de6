"""What the fuzzer found, made small: each of these once differed between eager and static."""

from collections import deque

import minipaddle as paddle
from tests.jit.fuzz_world import BIAS, STATE, W, slope


def parameter_given_back(x, m, s, n, p, q, flag):
    return {"a": x, "b": W}


def branches_that_give_back_what_came(x, m, s, n, p, q, flag):
    if s > 0:
        return s, s, p
    return s, s, p


def nested_branches_that_give_back_what_came(x, m, s, n, p, q, flag):
    if s > 0:
        y = x * 2
        if s > 0.5:
            return x, W, s
        x = y
    return W, x, s


def detached_on_one_side(x, m, s, n, p, q, flag):
    if s > 0:
        return s, x
    return s, x.detach()


def float_has_no_gradient(x, m, s, n, p, q, flag):
    return x * float(s), int(s)


def unchanged_under_no_grad(x, m, s, n, p, q, flag):
    with paddle.no_grad():
        y = z = x
        if s > 0:
            y += x
        while s > 0:
            z = z * 2
            s = s - 1
    return y, z


def assert_of_a_python_value_on_one_side(x, m, s, n, p, q, flag):
    if s > 10:
        assert p > 100
    return x


def result_that_nothing_leads_to(x, m, s, n, p, q, flag):
    y = paddle.where(x > 0, x, x) * 1.0
    y.zero_()
    return y


def prints_once(x, m, s, n, p, q, flag):
    print(x, W)
    if s > 0:
        print(s * 1.0, x)
        y = x * 2
    else:
        y = m[0]
    while n > 0:
        print(y)
        y = y * x
        n = n - 1
    return y


def overwritten_after_its_use(x, m, s, n, p, q, flag):
    y = x.clone()
    y.multiply_(x)
    y.tanh_()
    return y * x


def write_to_a_leaf(x, m, s, n, p, q, flag):
    x[n] = s
    return x


def state_written_on_one_side(x, m, s, n, p, q, flag):
    if x.sum() > 0:
        STATE.add_(x.detach())
    else:
        STATE[n % 3] = s.detach()
    return STATE * x


def walrus_beside_a_nonlocal(x, m, s, n, p, q, flag):
    for _, v in {"a": x, "b": W}.items():
        if found := s:
            u = (v * 2, found) if (v * q).sum() > m.sum() else (x, found)

            def helper(u=u):
                nonlocal found
                found = u[1] * 2

            helper()
    return x, s


def carried_beside_its_detached_self(x, m, s, n, p, q, flag):
    y, z = x, x.detach()
    for _ in range(n):
        y, z = y * 1.0, z
    return y, z


def picked_under_no_grad(x, m, s, n, p, q, flag):
    with paddle.no_grad():
        least = min(s, x[0], x[1])
    return least


def a_row_is_its_own_when_recorded(x, m, s, n, p, q, flag):
    total = x * 0.0
    for row in m:
        row = row * 1.0
        row[n % 3] = s
        total.add_(row)
    return total


def captured_tensor_asked_for_its_value(x, m, s, n, p, q, flag):
    y = x
    if BIAS:
        y = y + 1
    while BIAS > 0 and n > 0:
        y, n = y * 2, n - 1
    return y * float(BIAS), min(1, BIAS), not BIAS


def break_in_every_round(x, m, s, n, p, q, flag):
    rounds = 0
    for i in range(1, n):
        rounds = rounds + i
        print(x)
        break
    else:
        rounds = -1
    return rounds


def memory_taken_over_on_one_side(x, m, s, n, p, q, flag):
    if s > 0:
        STATE.scale_(x)
    elif s > -0.5:
        STATE.copy_(x)
    else:
        STATE.copy_(x.detach())
    return STATE


def result_of_a_loop_written_later(x, m, s, n, p, q, flag):
    y = x * 1.0
    for _ in range(1, n):
        y = y * 0.5
    y[y.argmax() % 3] *= s
    return y


def written_in_a_branch(x, m, s, n, p, q, flag):
    total, y = (x * x).sum(), x
    if s > 0:
        y = paddle.zeros_like(x) * 1.0
        y[:2] = total
    return y


def written_in_a_loop(x, m, s, n, p, q, flag):
    y, z, fuel = x * 1.0, x * -1.0, 3
    while s > -10 and fuel > 0:
        fuel -= 1
        y[:2] = 0.75
        z = y.tanh().detach() * 1.0
        z.add_(x)
    return y, z


def python_picks_the_first_of_equals(x, m, s, n, p, q, flag):
    with paddle.no_grad():
        least = min(s, abs(s))
    most = max(x * 0 + paddle.stack([s, s, BIAS]))
    return least, most, max(s, -s, abs(s))


def a_dict_of_the_function_is_its_own(x, m, s, n, p, q, flag):
    for _ in x:
        d = {"a": x, "b": m[1]}
        if s:
            break
        d["a"] = x * q
    return d


def the_same_dtype_is_the_same_tensor(x, m, s, n, p, q, flag):
    y = x * 1.0
    z = y.astype(y.dtype)
    w = paddle.cast(y, y.dtype)
    z[:2] += q
    w[0] = 7.0
    k = n + 0
    i = int(k)
    k.add_(n)
    return y, z, w, i, k


def written_under_no_grad_in_a_region(x, m, s, n, p, q, flag):
    y, z, fuel = x * 0.5, x * 2.0, 2
    with paddle.no_grad():
        if n > 1:
            y[-1] = abs(s)
        while fuel > 0 and s < 10:
            fuel -= 1
            if n <= 1:
                z[0] = s
            else:
                z.tanh_()
    return y, z


def a_leaf_made_in_a_loop(x, m, s, n, p, q, flag):
    y = x
    if s > -10:
        with paddle.no_grad():
            for _ in range((n - p) % 4):
                y = slope(paddle.clip(y, -2.0, 2.0), x * 1.5)
                z = x.mean()
                y = y + slope(y, z).sum()
    return y


def match_on_a_tensor(x, m, s, n, p, q, flag):
    match n if flag else n % 2:
        case None:
            y = x
        case 0:
            match s > 0:
                case True | 1:
                    y = x * 2
                case other:
                    y = x * other
        case 1 | 2 if s > 0:
            y = x + n
        case _ if s < -1:
            return -x
        case k:
            y = x - k
    for each in x:
        match p:
            case 0 | 1:
                break
            case 2 if each > 0:
                continue
        y = y + each
    return y


def a_list_that_grew_in_rounds_is_its_own(x, m, s, n, p, q, flag):
    _, *rows = x
    z, fuel = m[1], 1
    while fuel > 0 and s > q:
        fuel -= 1
        rows += [z * 0.5]
    return [z * 0.5 if z.max() > 1 else z, *rows]


def a_dict_whose_items_change_places_is_its_own(x, m, s, n, p, q, flag):
    d = {"a": x, "b": m[p % 2] if x.sum() > m.sum() else x}
    fuel = 2
    while fuel > 0 and not (x > x).all():
        fuel -= 1
        for _ in range(p % 3):
            d["a"], d["b"] = d["b"], d["a"]
            if s > 0.25:
                continue
            d = d
    return x, d["a"] * 1.0


def a_size_known_in_one_branch(x, m, s, n, p, q, flag):
    if s:
        STATE.add_(x)
        return s * 2
    return s


def a_size_known_in_a_round(x, m, s, n, p, q, flag):
    y = x * q
    for _ in y:
        y.multiply_(W)
    return y, m[p % 2] * 1.0


def mistakes_not_reached(x, m, s, n, p, q, flag):
    found = []
    for each in x:
        if s < 100:
            continue
        x = found[len(found)] + each
    return x


def written_after_the_loop_that_bound_it(x, m, s, n, p, q, flag):
    for _ in x:
        d = {"a": x, "b": W}
    d["a"], d["b"] = x * 2, x
    return d


def a_dict_changed_on_one_side_and_bound_on_the_other(x, m, s, n, p, q, flag):
    d = {"a": x, "b": x}
    if s > 0.25:
        d.update(a=x * 3)
    else:
        d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        d = {"a": x * d["a"], "b": x}
    else:
        for each in d.values():
            x = x + each
        d["a"] = x * 4
    return d


def a_number_in_a_list_that_both_sides_make_the_same(x, m, s, n, p, q, flag):
    d = [1, x]
    if s > 0.25:
        d[0] = 2
    else:
        d = [2, x]
    return d[0] * x


def memory_with_a_past_from_an_inner_loop(x, m, s, n, p, q, flag):
    y = m * 1.0
    for _ in x:
        y = -y
        y[0] = STATE
        for _ in x:
            STATE.add_(x)
    return y


def an_error_in_a_first_round_that_is_certain(x, m, s, n, p, q, flag):
    while q > 0 and s > 100:
        q -= 1
        for _ in reversed(x * 2):
            y = [][1] + s
        x = y
    return x


def what_no_result_needs_overflows(x, m, s, n, p, q, flag):
    y = z = x
    for _ in range(9):
        if s > -100:
            x = x + 1.5
            for _ in range(n):
                y = y * y * 4 + 2
            z = z * z * 4 + 2
    while n > 0:
        x, y, n = x * 2, y * y, n - 1
    return x


def a_size_as_a_float(x, m, s, n, p, q, flag):
    return float(x.shape[0]), float(len(x)) * 0.5, x * float(m.shape[1])


def whether_a_list_has_grown(x, m, s, n, p, q, flag):
    items, y = [], x * 1.0
    for _ in range(n):
        items.append(x)
    if items and s > 0:
        y = y * 2
    while items and y.sum() < 100 and q > 0:
        y, q = y * 3 + 1, q - 1
    return y if items else -y, not items, bool(items)


def changed_after_all_of_it_was_replaced(x, m, s, n, p, q, flag):
    y, z = x * 1.0, x * 2
    y.zero_()
    y[0] = 3.0
    for _ in range(n):
        z.fill_(0.5)
        z.scale_(q)
        z.add_(s)
    y.add_(z)
    return y, z


def written_under_no_grad_in_a_branch_and_a_loop(x, m, s, n, p, q, flag):
    y = x * 1.0
    if s > -100:
        y = x * 2
        with paddle.no_grad():
            y[0] = 0.5
    for _ in range(n):
        z = y * s
        with paddle.no_grad():
            y.scale_(2.0)
            if s > 0:
                z[1] = 3.0
        y = y + z
    return y


def masks_of_no_axes(x, m, s, n, p, q, flag):
    n, y, z = n * 1, x * 1.0, m * s
    n[s > 0] = 7
    y[s > 0.5] = -1.0
    z[s < 0, 1] = 5.0
    return n, y, z


def detached_in_a_loop(x, m, s, n, p, q, flag):
    y = z = x
    for _ in range(n, 2):
        y, z = y.detach(), z * 2
    return y, z


def a_deque_of_rows_after_an_early_return(x, m, s, n, p, q, flag):
    if s:
        return x, p, x
    rows = deque(x)

    def kept():
        return rows

    return x * 2, p + len(kept()), x * 3
