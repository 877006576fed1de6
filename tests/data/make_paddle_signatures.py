"""Write `paddle_signatures.json`: the parameter names and defaults of Paddle's public API.

The tests compare MiniPaddle's functions with this file, so they need no Paddle.
Run it again only for another Paddle version, with an interpreter that has `paddlepaddle`
(the committed file comes from 3.3.1, the CPU package, on Linux and CPython 3.11):

    python tests/data/make_paddle_signatures.py

The file holds
    paddle_version  the version that was read
    signatures      name -> list of parameters, in order, without `self`. A parameter is
                    {"name", "kind", "default"}: `kind` is that of `inspect.Parameter` in
                    lower case, `default` is a `repr`, absent when the argument is required.
                    A class has the signature of its constructor.
    attributes      names that exist but can't be called: dtypes, constants, properties
    unreadable      names that can be called, but whose parameters could not be found

Paddle hides some signatures. What is tried, in this order:
    1. a method written in C: the package's stub file, where it has a docstring, because the
       text signature is `(self, /)` for all; a function in C: `paddle`'s of the same name;
    2. `inspect.signature`, which follows `__wrapped__` and `__signature__`;
    3. when that shows only `*args, **kwargs` (a decorator without `functools.wraps`) or
       nothing: the `def` of that name in the source file, found with `ast`.
Aliases that Paddle's decorators also take (`input` for `x`, `dim` for `axis`) don't appear.
"""

import ast
import functools
import importlib
import inspect
import json
import re
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import paddle  # noqa: E402  (it warns on import)

TARGET = Path(__file__).with_name("paddle_signatures.json")

# All public names of these are read.
NAMESPACES = """
    paddle paddle.Tensor paddle.amp paddle.amp.debugging paddle.audio paddle.audio.backends
    paddle.audio.datasets paddle.audio.features paddle.audio.functional paddle.autograd
    paddle.callbacks paddle.compat paddle.compat.nn paddle.compat.nn.functional paddle.cuda
    paddle.device paddle.device.cuda paddle.device.xpu paddle.distributed
    paddle.distributed.communication.stream paddle.distributed.fleet
    paddle.distributed.fleet.utils paddle.distributed.passes paddle.distributed.rpc
    paddle.distributed.sharding paddle.distribution paddle.distribution.transform paddle.fft
    paddle.geometric paddle.hub paddle.incubate paddle.incubate.asp paddle.incubate.autograd
    paddle.incubate.autotune paddle.incubate.cc paddle.incubate.nn paddle.incubate.nn.functional
    paddle.incubate.optimizer paddle.incubate.optimizer.functional paddle.inference paddle.io
    paddle.jit paddle.linalg paddle.metric paddle.nn paddle.nn.attention paddle.nn.functional
    paddle.nn.initializer paddle.nn.quant paddle.nn.utils paddle.onnx paddle.optimizer
    paddle.optimizer.lr paddle.profiler paddle.quantization paddle.regularizer paddle.signal
    paddle.sparse paddle.sparse.nn paddle.sparse.nn.functional paddle.special paddle.static
    paddle.static.nn paddle.sysconfig paddle.text paddle.utils paddle.utils.cpp_extension
    paddle.utils.dlpack paddle.utils.download paddle.utils.unique_name paddle.version
    paddle.vision paddle.vision.datasets paddle.vision.models paddle.vision.ops
    paddle.vision.transforms
"""

# Names outside `__all__`, or in namespaces of which only these matter here.
SINGLE_NAMES = (
    "paddle.cholesky",
    "paddle.eigvalsh",
    "paddle.get_device",
    "paddle.inverse",
    "paddle.is_compiled_with_cinn",
    "paddle.is_compiled_with_cuda",
    "paddle.is_compiled_with_distribute",
    "paddle.is_compiled_with_rocm",
    "paddle.is_compiled_with_xpu",
    "paddle.norm",
    "paddle.set_device",
    "paddle.sigmoid",
    "paddle.autograd.enable_grad",
    "paddle.autograd.grad",
    "paddle.autograd.is_grad_enabled",
    "paddle.autograd.no_grad",
    "paddle.autograd.set_grad_enabled",
    "paddle.device.get_device",
    "paddle.device.is_compiled_with_cuda",
    "paddle.device.set_device",
    "paddle.device.synchronize",
    "paddle.jit.ignore_module",
    "paddle.nn.SyncBatchNorm.convert_sync_batchnorm",
    "paddle.nn.functional.pdist",
    "paddle.nn.initializer.Initializer",
    "paddle.nn.loss.CrossEntropyLoss",
    "paddle.nn.loss.MSELoss",
    "paddle.static.BuildStrategy",
    "paddle.static.Executor",
    "paddle.static.InputSpec",
    "paddle.static.InputSpec.from_numpy",
    "paddle.static.InputSpec.from_tensor",
    "paddle.static.Program",
    "paddle.static.data",
    "paddle.static.default_main_program",
    "paddle.static.default_startup_program",
    "paddle.static.global_scope",
    "paddle.static.load_inference_model",
    "paddle.static.program_guard",
    "paddle.static.save_inference_model",
)

VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def main() -> None:
    signatures, attributes, unreadable = {}, [], []
    for name in public_names():
        value = resolve(name)
        if not callable(value):
            attributes.append(name)
            continue
        parameters = find_parameters(name, value)
        if parameters is None:
            unreadable.append(name)
        else:
            signatures[name] = [describe(parameter) for parameter in parameters]
    content = {
        "paddle_version": paddle.__version__,
        "signatures": signatures,
        "attributes": attributes,
        "unreadable": unreadable,
    }
    TARGET.write_text(to_json(content), encoding="utf-8")
    print(
        f"paddle {paddle.__version__}: {len(signatures)} signatures, {len(attributes)} attributes, "
        f"{len(unreadable)} unreadable -> {TARGET.name}"
    )


def public_names() -> list[str]:
    """Every name to read, sorted; names that this Paddle lacks are dropped."""
    names = set(SINGLE_NAMES)
    for namespace in NAMESPACES.split():
        owner = resolve(namespace)
        members = getattr(owner, "__all__", None) or dir(owner)
        names.update(f"{namespace}.{member}" for member in members if not member.startswith("_"))
    return sorted(name for name in names if exists(name) and not inspect.ismodule(resolve(name)))


def resolve(name: str) -> object:
    """The object that a dotted name means; submodules are imported on the way."""
    value, path = paddle, "paddle"
    for part in name.split(".")[1:]:
        path += f".{part}"
        if not hasattr(value, part):
            importlib.import_module(path)
        value = getattr(value, part)
    return value


def exists(name: str) -> bool:
    try:
        resolve(name)
    except (AttributeError, ImportError):
        return False
    return True


def find_parameters(name: str, value: object) -> list[inspect.Parameter] | None:
    """The parameters without `self`, or None when they can't be found."""
    if inspect.isclass(value):
        return constructor_parameters(value)
    if name.startswith("paddle.Tensor."):
        return without_self(tensor_method_parameters(name, value))
    if inspect.isbuiltin(value):
        value = getattr(paddle, value.__name__, value)
    return function_parameters(value)


def constructor_parameters(cls: type) -> list[inspect.Parameter] | None:
    if cls.__init__ is not object.__init__:
        # A slot of a C type says only (*args, **kwargs).
        parameters = function_parameters(cls.__init__) if has_code(cls.__init__) else None
    elif cls.__new__ is not object.__new__:
        parameters = function_parameters(cls.__new__) if has_code(cls.__new__) else None
    else:
        return []
    return without_self(parameters)


def without_self(parameters: list[inspect.Parameter] | None) -> list[inspect.Parameter] | None:
    if not parameters or parameters[0].kind in VARIADIC:
        return parameters
    return parameters[1:]


def has_code(function: object) -> bool:
    return hasattr(inspect.unwrap(function), "__code__")


def tensor_method_parameters(name: str, value: object) -> list[inspect.Parameter] | None:
    """The parameters with `self` first."""
    if has_code(value):
        return function_parameters(value)
    stub = syntax(Path(paddle.__file__).parent / "tensor" / "tensor.pyi")
    return definition(stub, name.rpartition(".")[2], documented=True)


def function_parameters(function: object) -> list[inspect.Parameter] | None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    else:
        if not parameters or any(parameter.kind not in VARIADIC for parameter in parameters):
            return parameters
    return source_parameters(function) or parameters or None


def source_parameters(function: object) -> list[inspect.Parameter] | None:
    """Parameters from the `def` in the source file, for a decorator that hid them."""
    module = sys.modules.get(getattr(function, "__module__", None))
    if not (getattr(module, "__file__", None) or "").endswith(".py"):
        return None
    return definition(syntax(Path(module.__file__)), function.__name__)


def definition(
    tree: ast.Module, name: str, documented: bool = False
) -> list[inspect.Parameter] | None:
    """Parameters of the first `def name` that names any: Paddle's own overload stands first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            parameters = from_syntax(node.args)
            named = not parameters or any(each.kind not in VARIADIC for each in parameters)
            if named and (ast.get_docstring(node) or not documented):
                return parameters
    return None


def from_syntax(arguments: ast.arguments) -> list[inspect.Parameter]:
    def parameter(argument: ast.arg, kind: object, default: ast.expr | None = None) -> object:
        value = inspect.Parameter.empty if default is None else Source(ast.unparse(default))
        return inspect.Parameter(argument.arg, kind, default=value)

    kinds = inspect.Parameter
    positional = [(argument, kinds.POSITIONAL_ONLY) for argument in arguments.posonlyargs]
    positional += [(argument, kinds.POSITIONAL_OR_KEYWORD) for argument in arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    result = [parameter(*pair, default) for pair, default in zip(positional, defaults, strict=True)]
    if arguments.vararg:
        result.append(parameter(arguments.vararg, kinds.VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        result.append(parameter(argument, kinds.KEYWORD_ONLY, default))
    if arguments.kwarg:
        result.append(parameter(arguments.kwarg, kinds.VAR_KEYWORD))
    return result


class Source(str):
    """A default as it stands in the source text."""

    __repr__ = str.__str__


@functools.cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def describe(parameter: inspect.Parameter) -> dict[str, str]:
    entry = {"name": parameter.name, "kind": parameter.kind.name.lower()}
    if parameter.default is not inspect.Parameter.empty:
        entry["default"] = stable_repr(parameter.default)
    return entry


def stable_repr(value: object) -> str:
    """A `repr` without addresses, so that two runs write the same file."""
    if isinstance(value, paddle.dtype):
        return str(value)
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def to_json(content: dict[str, object]) -> str:
    """Indented, one parameter a line."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    parameter = re.compile(r"\{\s+(\"name\": .*?)\s+\}", re.DOTALL)
    return parameter.sub(lambda match: "{" + re.sub(r"\n\s+", " ", match[1]) + "}", text) + "\n"


if __name__ == "__main__":
    main()
