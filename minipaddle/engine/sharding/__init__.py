"""Tensors in pieces: placements, the rules of operators, and the moves between placements."""
