"""Merge the mean: several small batches make one step, on several ranks.

A batch that does not fit is cut into micro-batches: a backward for each, and one step of the
optimizer by the mean of their gradients. Write two methods of the optimizer that does so:
`merge(self, p)`, called after each backward for each parameter that got a gradient, and
`update(self)`, called after every `self.k_steps`-th of them.

- `self.sum_of(p)` is a tensor in which the sum of the gradients of a parameter is kept; it is zero
  at first. `x.set_value(y)` overwrites a tensor: in a program, too, where the steps are captured.
- `merge` adds the gradient `p.grad` to that sum, and leaves p without a gradient: otherwise the
  next backward adds to it. `clear_gradient(set_to_zero=False)`, a method of p, does that.
- `update`: `self.average_sums()` gives pairs (parameter, the sum of its gradients, averaged over
  the ranks). It communicates, so call it once. The gradient for the step is the *mean* over the
  k_steps micro-batches if `self.avg` is true, otherwise the sum; a parameter that got a gradient in
  some of them alone has zeros in the others. Let it be `p.grad`, make the step of
  `self.inner_optimizer`, and leave all as it was before the first micro-batch: no gradient, and
  zeros in the sums.
- `self.merged` is the dict {parameter: the tensor of its sum} of those that have one. `update`
  returns `[]`: it is a branch of a `cond` of the program, and gives no results.

    k_steps = 2, gradients 1 and 3  ->  a step by 2; with avg=False by 4

Micro-batches of different sizes need weights, as the chapter shows: here they are equally large.
Source: Paddle API `paddle.incubate.optimizer.GradientMergeOptimizer`.
"""

import minipaddle as paddle


def merge(self, p) -> None:
    """Add the gradient of a parameter to its sum, and leave none."""
    merged = self.sum_of(p)
    merged.set_value(merged + p.grad)
    p.clear_gradient(set_to_zero=False)


def update(self) -> list:
    """A step by what was merged; afterwards nothing is."""
    for p, total in self.average_sums():
        p.grad = total / self.k_steps if self.avg else total
    self.inner_optimizer.step()
    for p, merged in self.merged.items():
        p.clear_gradient(set_to_zero=False)
        merged.set_value(paddle.zeros_like(merged))
    return []
