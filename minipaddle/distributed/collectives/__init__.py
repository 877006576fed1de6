"""What ranks exchange: collectives of tensors and of Python objects, as methods and operators."""
