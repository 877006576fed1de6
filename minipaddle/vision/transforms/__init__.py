"""What is done to pictures on their way to a model. Source: Paddle API `paddle.vision.transforms`."""

__all__ = []
