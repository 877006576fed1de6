"""Tensors, layers and models on many ranks: sharded tensors, layouts, data parallel."""
