"""Loaded programs on whole numbers: they have no layers, so their products are quantized."""

from contextlib import contextmanager
from types import SimpleNamespace

from ..core.casting import find_interpreter
from ..engine.core.errors import value_error
from ..engine.eager.tensor import Tensor
from ..jit.loading import TranslatedLayer
from ..nn import Layer, LayerList
from ..nn.quant.qat import Quanted
from ..ops.quantized import PRODUCTS, whole_numbers


class QuantedProduct(Quanted):
    """The products of a program with one of its weights."""

    def __init__(self, weight, config):
        super().__init__(SimpleNamespace(weight=weight, bias=None), config)
        self.axis = 1 if weight.ndim == 2 else 0

    def forward(self, op, input, *more, **attrs):
        """The result of an operator for an input, the weight, and what else it takes."""
        x = self.round(self.activation_quanter, input)
        w = self.round(self.weight_quanter, self.weight)
        with whole_numbers():
            y = op(x, w, *more, **attrs)
        if not self.converted and type(y) is Tensor:
            object.__setattr__(self, "seen", (input.size, y.size))
        return y


class QuantedProgram(Layer):
    """A loaded program in which quanters see, or round, what is multiplied with a weight.

    Products in branches and loops stay as they are, and so do those whose weight is computed.
    """

    def __init__(self, model: TranslatedLayer, config):
        super().__init__()
        self.model, self.weights = model, weights_of(model)
        if config is None or not self.weights:
            raise value_error(
                f"a loaded program with {len(self.weights)} weights and the QuantConfig {config}",
                expected="products with weights, and factories for all of them",
            )
        kept = [model._state(name) for name in self.weights]
        self.products = LayerList([QuantedProduct(w, config) for w in kept])
        self.training = model.training

    def forward(self, *inputs, **named):
        """The outputs of the program."""
        by_array = {}
        for name, product in zip(self.weights, self.products, strict=True):
            _, _, store, key = self.model._places[name]
            if product.converted and store[key] is not product.weight:
                store[key] = product.weight  # its floats are not kept
            by_array[id(store[key].array)] = product
        with self.model.apply_within(multiplying(by_array)):
            return self.model(*inputs, **named)


def weights_of(model: TranslatedLayer) -> list[str]:
    """The names of parameters that an operator with a rule for whole numbers multiplies with."""
    program = model.program()
    names = {state.record: state.name for state in program.states if state.update is None}
    used = [names.get(r.inputs[1]) for r in program.records if r.op in PRODUCTS]
    kinds = {name: kind for name, (kind, *_) in model._places.items()}
    return list(dict.fromkeys(n for n in used if n is not None and kinds[n] == "parameter"))


@contextmanager
def multiplying(by_array: dict):
    """A block in which products with certain arrays are those of a `QuantedProduct`."""
    top = find_interpreter()
    apply, own = top.apply, vars(top)
    before = {"apply": own["apply"]} if "apply" in own else {}

    def apply_product(op, inputs, attrs):
        w = inputs[1] if op in PRODUCTS else None
        product = by_array.get(id(w.array)) if isinstance(w, Tensor) else None
        if product is None:
            return apply(op, inputs, attrs)
        own["apply"] = apply  # its own operators are no products of the program
        try:
            return product(op, inputs[0], *inputs[2:], **attrs)
        finally:
            own["apply"] = apply_product

    own["apply"] = apply_product
    try:
        yield
    finally:
        del own["apply"]
        own.update(before)
