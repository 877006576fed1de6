"""Paddle's public functions on tensors, over the operators in `minipaddle.ops`."""
