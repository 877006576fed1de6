"""An observer put before a layer, or after it."""

from ..nn import Layer


class ObserveWrapper(Layer):
    """A layer whose inputs (results without `observe_input`) go through an observer or quanter."""

    def __init__(self, observer, observed, observe_input=True):
        super().__init__()
        self._observer, self._observed = observer, observed
        self._observe_input = observe_input

    def forward(self, *inputs, **kwargs):
        if self._observe_input:
            return self._observed(self._observer(*inputs), **kwargs)
        return self._observer(self._observed(*inputs, **kwargs))
