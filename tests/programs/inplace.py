"""Writing into tensors."""

from tests.programs.common import wave


def methods(paddle):
    """Methods whose names end in an underscore."""
    x = paddle.to_tensor(wave(2, 3))
    view = x[0]
    x.add_(paddle.ones([2, 3]))
    x.scale_(2.0)
    x.clip_(0.0, 3.0)
    before = x.clone()
    x[1] = 0.5
    x.subtract_(paddle.full([2, 3], 0.25))
    y = paddle.zeros([4])
    y.fill_(3.0)
    z = y.reshape_([2, 2])
    w = paddle.ones([3])
    w.zero_()
    return [before, x, view, z, y.shape, w, paddle.increment(paddle.to_tensor([1.0]), value=2.0)]


def writing_through_views(paddle):
    """A view shares the memory it looks into; a clone does not."""
    board = paddle.zeros([4, 4])
    board[1:3, 1:3] = 1.0
    row, copy = board[0], board.clone()
    row[2] = 5.0
    diagonal = board.flatten()[::5]
    diagonal.fill_(9.0)
    board.T[0, 3] = -1.0
    return board, copy


def with_gradients(paddle):
    """In-place operations on computed tensors take part in the backward."""
    x = paddle.to_tensor(wave(4), stop_gradient=False)
    y = x * 3
    y.exp_()
    z = x + 1
    z.add_(paddle.ones([4]))
    z[0] = 5.0
    (y.sum() + z.sum()).backward()
    filled = paddle.zeros([3])
    v = paddle.to_tensor(2.0, stop_gradient=False)
    filled[1] = v * v
    (filled * paddle.to_tensor([1.0, 10.0, 100.0])).sum().backward()
    return x.grad, v.grad, filled.stop_gradient


def under_no_grad(paddle):
    """A parameter updated by hand."""
    w = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    for _ in range(3):
        loss = (w**2).sum()
        loss.backward()
        with paddle.no_grad():
            w.subtract_(0.1 * w.grad)
        w.clear_grad()
    w.set_value(w * 10)
    return w, w.stop_gradient, w.is_leaf


def ring_buffer(paddle):
    """The last four values of a stream, in memory that is made once."""
    ring, seen = paddle.zeros([4]), []
    for step in range(6):
        ring[step % 4] = float(step * step)
        seen.append(ring.sum().item())
    ordered = paddle.roll(ring, shifts=-(6 % 4))
    return seen, ordered
