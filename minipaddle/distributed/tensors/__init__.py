"""How tensors, layers and models lie on ranks: tensors in pieces, layouts, data parallel."""
