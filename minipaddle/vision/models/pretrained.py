"""The error for `pretrained=True`."""

from ...engine.core.errors import value_error


def refuse_pretrained(name: str, pretrained) -> None:
    """Raise ValueError if weights are asked for: MiniPaddle downloads nothing."""
    if pretrained:
        raise value_error(
            f"{name}(pretrained={pretrained!r}): MiniPaddle downloads no weights",
            "pretrained=False",
            hint=f"net = {name}(); net.set_state_dict(paddle.load(path)) with a file of yours",
        )
