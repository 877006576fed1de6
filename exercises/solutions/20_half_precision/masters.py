"""Master weights: what an optimizer's rule computes on.

A parameter is stored in half precision, and a step changes it by less than half precision can add.
So the optimizer may keep a copy in float32, its master. Before each step the engine asks what the
rule is to compute on; what the rule gives, it writes into the parameter, rounded, and into the
master, as it is. Write `upcast(weights, master, g, dtype)`, which returns (weights, gradient):

- `weights` is the parameter, in bfloat16 or float16, `g` its gradient, perhaps in another dtype.
  `dtype` is that in which the rule computes. What you return has this dtype.
- `master` is the copy, which has that dtype already, or None if none is kept. The parameter is the
  rounded master: if a master is there, the rule computes on it.
- The optimizer goes on to use master and parameter: leave them as they are.

    weights 1.0, master 0.9985  ->  0.9985
    weights 1.0, master None    ->  1.0

Source: Micikevicius et al., "Mixed Precision Training", 2018, section 3.1.
"""


def upcast(weights, master, g, dtype):
    """The weights and the gradient as a rule takes them."""
    weights = weights.astype(dtype) if master is None else master
    return weights, g.astype(dtype)
