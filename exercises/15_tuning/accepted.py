"""Is it faster, or was it luck?

A search tries dozens of ways to write a kernel and hands you the one that looked best. Something
always looks best: on a machine that does other things too, the same kernel measured twice never
takes the same time, and the luckiest of fifty equal ones looks a good deal faster. So the winner
must win again, in its program, against the kernel as it was: run in turn, default, other, default,
other, …, so that whatever slows the machine down slows both.

Write `accepted(default, other)`. Both are lists of seconds, equally long: `default[k]` and
`other[k]` were measured one after the other. Return True if *both* hold, else False:

- the median of `other` is less than 0.98 times the median of `default` (a gain of 2 % is nothing to
  rely on, and an average would fall for a single interrupted run);
- in at least two of three pairs `other` took less time than `default`. A tie is no win.

The median of an even number of seconds is the mean of the two in the middle.

    accepted([10, 10, 10], [9, 9, 30])  ->  True     (medians 10 and 9; two wins of three)
    accepted([10, 10, 10], [9, 30, 30]) ->  False

`paddle.tune` keeps only what your test accepts.
Source: Georges, Buytaert and Eeckhout, "Statistically Rigorous Java Performance Evaluation" (2007).
"""

from statistics import median


def accepted(default, other):
    """Is the kernel that took the seconds `other` faster than the default, beyond noise?"""
    raise NotImplementedError
