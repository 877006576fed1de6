"""Adam.

Write the rule that trains most networks. For one parameter it gets

- `p` its value and `g` its gradient, tensors of one shape;
- `lr` the learning rate, a tensor of one number;
- `moment1` and `moment2` the running averages of g and of g² so far, of p's shape, zeros at first;
- `power1` and `power2` tensors of one number: beta1^t and beta2^t in step t = 1, 2, 3, … (so in the
  first step they are beta1 and beta2);
- `beta1`, `beta2`, `epsilon` numbers;

and returns five tensors: the new p, the new averages, and the two powers *for the next step*. Write
into none of those given. The paper's step t, all element by element:

    m_t = beta1 * m_(t-1) + (1 - beta1) * g        v_t = beta2 * v_(t-1) + (1 - beta2) * g²
    m̂   = m_t / (1 - beta1^t)                      v̂   = v_t / (1 - beta2^t)
    p_t = p_(t-1) - lr * m̂ / (√v̂ + epsilon)

What is handed back are m_t and v_t themselves, without the correction. Example, first step:

    p = 1, g = 4, lr = 0.5, beta1 = 0.9, beta2 = 0.99, epsilon = 0
    m = 0.4, v = 0.16, m̂ = 4, v̂ = 16, p = 1 - 0.5 * 4 / 4 = 0.5, powers 0.81 and 0.9801

Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), algorithm 1.
"""

import minipaddle as paddle


def adam(p, g, lr, moment1, moment2, power1, power2, *, beta1, beta2, epsilon):
    """(new p, new moment1, new moment2, power1 of the next step, power2 of the next step)."""
    moment1 = beta1 * moment1 + (1 - beta1) * g
    moment2 = beta2 * moment2 + (1 - beta2) * g * g
    # Both started at 0: of a steady g they have seen only the share 1 - beta^t.
    mean = moment1 / (1 - power1)
    square = moment2 / (1 - power2)
    p = p - lr * mean / (paddle.sqrt(square) + epsilon)
    # Corrected averages would be corrected again next time: hand back the plain ones.
    return p, moment1, moment2, power1 * beta1, power2 * beta2
