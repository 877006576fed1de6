"""Collectives of tensors and of Python objects, as methods and operators."""
