"""The engine, which the book teaches. It imports NumPy and nothing else of MiniPaddle."""
