"""A model as a folder of C: the program, its header, weights, examples, a Makefile, one page, and
Paddle's C++ interface.
"""

import keyword
import re
from pathlib import Path
from string import Template

from ..core.files import replace
from ..engine.codegen.kernel import read_template
from ..engine.core.errors import value_error
from ..jit.saved import SavedModel
from .arena import bind_state
from .header import HeaderArray, accessor, declaration
from .letters import OPTION as LETTERS
from .letters import as_letters, check_letters, is_reader
from .library import INDEX_ERRORS, Library
from .processor import LEVELS

OPTIONS = {
    "processor": {
        "choices": [*LEVELS],
        "help": "the processor to build for (default generic); the C is right on others too",
    },
    "embed": {"action": "store_true", "help": "the weights as a C array, linked into the program"},
    "method": {"help": "which method of the model (default forward)"},
    "name": {"help": "what files and functions are called (default model)"},
    **LETTERS,
}
PADDLE_HEADERS = ("paddle_inference_api.h", "exported_session.h", "exported_model.h")
WORDS = 8
"""Numbers in a line of the array of weights."""


def write(
    saved: SavedModel,
    path: str | Path,
    *,
    processor: str = "generic",
    embed: bool = False,
    method: str = "forward",
    name: str = "model",
    letters: str | None = None,
) -> list[Path]:
    """Write the folder; returns the paths of its files. With `letters`, a reader of lines of text
    has `read_line.c`, a program that reads them in pictures.

    Raises ValueError for a model with open sizes, for float16, for an operator without C, and for
    an unknown processor or method.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> spec = [paddle.static.InputSpec([1, 4])]
    >>> paddle.jit.save(paddle.nn.Linear(4, 2), folder, spec, format="c", processor="x86-64-v3")
    >>> sorted(os.listdir(folder))
    ['Makefile', 'README.md', 'main.c', 'main.cpp', 'model.bin', 'model.c', 'model.h',
     'model_paddle.c', 'paddle']
    """
    if processor not in LEVELS:
        raise value_error(f"processor={processor!r}", expected=f"one of {', '.join(LEVELS)}")
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise value_error(f"name={name!r}", expected="a name of C, such as model or digits")
    folder = LibraryFolder(Library(saved, method, processor), name, embed)
    files = folder.files() | folder.line_reader(as_letters(letters))
    replace({str(Path(path) / file): data for file, data in files.items()})
    return [Path(path) / file for file in files]


class LibraryFolder:
    """The files of a library. Inputs and outputs are called by their names in the header."""

    def __init__(self, library: Library, name: str, embed: bool):
        self.library, self.name, self.embed = library, name, embed
        self.slots = library.inputs + library.outputs
        self.words = self.facts()

    def files(self) -> dict[str, bytes]:
        """The bytes of each file."""
        texts = {
            f"{self.name}.h": self.fill("model.h", accessors=self.declarations()),
            f"{self.name}.c": self.fill("model.c", **self.implementation()),
            "main.c": self.fill("main.c", **self.example()),
            "main.cpp": self.fill("main.cpp", **self.example_in_cpp()),
            "Makefile": self.fill("Makefile"),
            "README.md": self.fill("README.md"),
            f"{self.name}_paddle.c": self.fill("model_paddle.c", **self.description()),
            **{f"paddle/include/{x}": read_template(x, __file__) for x in PADDLE_HEADERS},
        }
        files = {file: text.encode() for file, text in texts.items()}
        weights = self.library.weights_file
        if self.embed:
            files[self.words["weights_name"]] = array_text(self.name, weights).encode()
        else:
            files[self.words["weights_name"]] = weights
        return files

    def line_reader(self, letters: str | None) -> dict[str, bytes]:
        """The program of a model that reads lines of text, if its letters are known."""
        if letters is None or not is_reader(self.library):
            return {}
        (x,), (y, *_) = self.library.inputs, self.library.outputs
        _, columns, classes = y.spec.shape
        if check_letters(letters, classes - 1, "letters") is None:
            return {}
        words = {
            "letters": ", ".join(f'"{c_string(letter)}"' for letter in letters),
            "width": x.spec.shape[-1],
            "columns": columns,
            "classes": classes,
            "input": x.name,
            "output": y.name,
        }
        return {"read_line.c": self.fill("read_line.c", **self.example(), **words).encode()}

    def fill(self, template: str, **words: str) -> str:
        """A template with the facts and these words in it."""
        return Template(read_template(template, __file__)).substitute(self.words, **words)

    def facts(self) -> dict[str, object]:
        """The words that several templates have in common."""
        own, name, level = self.library, self.name, LEVELS[self.library.processor]
        weights = f"{name}_weights.c" if self.embed else f"{name}.bin"
        return {
            "name": name,
            "NAME": name.upper(),
            "title": f"{name}, by MiniPaddle",
            "arena_size": own.size,
            "weights_size": own.file_size,
            "weights_name": weights,
            "weights_where": f"linked in from `{weights}`" if self.embed else f"in `{weights}`",
            "embedded": self.declare_weights(),
            "index_errors": INDEX_ERRORS,
            "states": " States change with each run; init sets them back." if own.updated else "",
            "first": self.slots[0].name,
            "flags": level.flags,
            "processor": own.processor,
            "about": level.about,
            "inputs": ", ".join(f"`{s.name}`: {s.spec}" for s in own.inputs) or "none",
            "outputs": ", ".join(f"`{s.name}`: {s.spec}" for s in own.outputs),
            "sources": f"{name}.c {weights}" if self.embed else f"{name}.c",
            "built": f"Written for the processor {own.processor}: {level.about}.",
        }

    def declare_weights(self) -> str:
        """The declaration of the array of weights, if there is one."""
        if not self.embed:
            return ""
        size = f"{self.name.upper()}_WEIGHTS_SIZE"
        declared = f"extern const uint64_t {self.name}_weights[{size} / 8];"
        return f"\n/* The weights, linked in. */\n{declared}\n"

    # ---- the library -------------------------------------------------------------------------

    def declarations(self) -> str:
        """The macros and functions of each input and output, in the header."""
        lines = [line for array in self.slots for line in [*declaration(self.name, array), ""]]
        return "\n".join(lines)

    def implementation(self) -> dict[str, object]:
        """The words of model.c."""
        own, program = self.library, self.library.program
        states = len(program.inputs)
        outputs = states + len(program.states)
        cases = (
            f'    case {INDEX_ERRORS + k}: return "{c_string(text)}";\n'
            for k, text in enumerate(own.index_errors)
        )
        accessors = (
            f"{accessor(self.name, s)} {{ return ({s.type} *)((char *)arena + {s.at}); }}"
            for s in self.slots
        )
        return {
            "body": own.body,
            "ready": own.number >> 33,
            "number": f"0x{own.number:x}",
            "pointers": own.pointers,
            "pointers_set": "\n".join(self.pointers(states, outputs)),
            "work": own.work,
            "first_state": states,
            "first_output": outputs,
            "index_cases": "".join(cases),
            "accessors": "\n\n".join(accessors),
        }

    def pointers(self, states: int, outputs: int) -> list[str]:
        """The statements that set the addresses of inputs, states and outputs."""
        own = self.library
        lines = [
            f"    own->all[{k}] = here + {s.at};  /* {s.name} */" for k, s in enumerate(own.inputs)
        ]
        if own.arrays:  # the table of pointers has inputs and outputs, which are not const, too
            lines.append("    char *const file = (char *)weights;  /* nothing is written there */")
        for k, at, array in zip(own.weights, own.offsets, own.arrays, strict=True):
            state, place = own.program.states[k], own.updated.get(k, own.packed.get(k))
            lines.append(f"    /* {state.name}: {state.record.spec} */")
            bound = bind_state(states + k, at, array.nbytes, place, k in own.updated)
            lines += [f"    {statement}" for statement in bound]
        lines += [
            f"    own->all[{outputs + k}] = here + {s.at};  /* {s.name} */"
            for k, s in enumerate(own.outputs)
        ]
        if own.packed:  # in the order of `prepacked`, which is that of the function
            order = [s.record for s in own.program.states]
            ks = [order.index(state) for state in own.kernels.prepacked]
            files = dict(zip(own.weights, own.offsets, strict=True))
            sources = ", ".join(f"file + {files[k]}" for k in ks)
            targets = ", ".join(f"here + {own.packed[k]}" for k in ks)
            lines.append(f"    void *const given[] = {{{sources}}};")
            lines.append(f"    void *const made[] = {{{targets}}};")
            lines.append("    prepack(given, made);  /* weights in the form that kernels want */")
        return lines

    def description(self) -> dict[str, object]:
        """The words of model_paddle.c."""
        groups = self.library.inputs, self.library.outputs
        inputs, outputs = ("".join(map(describe_array, group)) for group in groups)
        return {
            "input_rows": inputs,
            "output_rows": outputs,
            "counts": ", ".join(str(len(group)) for group in groups),
            "changes": int(bool(self.library.updated)),
            "weights_linked": f"{self.name}_weights" if self.embed else "NULL",
        }

    # ---- the examples ------------------------------------------------------------------------

    def example(self) -> dict[str, str]:
        """The words of main.c."""
        name, NAME = self.name, self.name.upper()
        read = "".join(
            f"        if (fread({name}_{s.name}(arena), sizeof *{name}_{s.name}(arena), "
            f"{NAME}_{s.name.upper()}_COUNT, numbers) != {NAME}_{s.name.upper()}_COUNT)\n"
            '            return stop("the inputs are too short");\n'
            for s in self.library.inputs
        )
        shown = "".join(
            f"    for (size_t k = 0; k < {NAME}_{s.name.upper()}_COUNT; k++)\n"
            f'        printf("{s.name} %zu {formats(s)[0]}\\n", k, '
            f"{formats(s)[1]}{name}_{s.name}(arena)[k]);\n"
            for s in self.library.outputs
        )
        if self.embed:
            declared, reading = "", f"    const void *const weights = {name}_weights;\n"
        else:
            declared = f"static _Alignas({NAME}_ALIGNMENT) char weights[{NAME}_WEIGHTS_SIZE];\n"
            reading = (
                f'    FILE *file = fopen("{self.words["weights_name"]}", "rb");\n'
                f'    if (!file) return stop("there is no {self.words["weights_name"]} here");\n'
                "    const size_t size = fread(weights, 1, sizeof weights, file);\n"
                '    if (size != sizeof weights) return stop("the weights are cut off");\n'
            )
        return {
            "weights_declared": declared,
            "weights_read": reading,
            "inputs_read": read,
            "outputs_printed": shown,
        }

    def example_in_cpp(self) -> dict[str, str]:
        """The words of main.cpp."""
        name, NAME = self.name, self.name.upper()
        members = "".join(
            f"    {s.type} *{s.name}() {{ return {name}_{s.name}(arena.get()); }}\n"
            for s in self.slots
        )
        first = "".join(
            f'        std::printf("{s.name} {formats(s)[0]}\\n", '
            f"{formats(s)[1]}model.{s.name}()[0]);\n"
            for s in self.library.outputs
        )
        if self.embed:
            return {
                "weights_member": ";",
                "weights_cpp": "",
                "weights_get": f"{name}_weights",
                "members": members,
                "first_numbers": first,
            }
        file = self.words["weights_name"]
        reading = (
            f'        std::ifstream file("{file}", std::ios::binary);\n'
            f"        file.read(weights.get(), {NAME}_WEIGHTS_SIZE);\n"
            f'        if (!file) throw std::runtime_error("{file} cannot be read");\n'
        )
        return {
            "weights_member": f", weights = memory({NAME}_WEIGHTS_SIZE);",
            "weights_cpp": reading,
            "weights_get": "weights.get()",
            "members": members,
            "first_numbers": first,
        }


def describe_array(array: HeaderArray) -> str:
    """The row of an input or output in its library's description of itself."""
    kind, sizes = array.spec.dtype.name.upper(), ", ".join(map(str, array.spec.shape or [1]))
    shape = f"(const int[]){{{sizes}}}"
    return f'    {{"{c_string(array.label)}", {kind}, {array.spec.ndim}, {shape}, {array.at}}},\n'


def formats(slot: HeaderArray) -> tuple[str, str]:
    """(the format of printf, the cast before the number)."""
    if slot.type in ("float", "double"):
        return ("%.9g", "") if slot.type == "float" else ("%.17g", "")
    return "%lld", "(long long)"


def c_string(text: str) -> str:
    """A text between the quotes of a C string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def array_text(name: str, data: bytes) -> str:
    """The C file of an array with these bytes."""
    size = len(data) // 8
    numbers = (f"0x{int.from_bytes(data[k : k + 8], 'little'):x}" for k in range(0, 8 * size, 8))
    words = [*numbers]
    lines = (",".join(words[k : k + WORDS]) + ",\n" for k in range(0, size, WORDS))
    align = "__attribute__((aligned(64)))"
    return (
        f'#include "{name}.h"\n\n{align} const uint64_t {name}_weights[{size}] = {{\n'
        f"{''.join(lines)}}};\n"
    )
