"""`python -m minipaddle COMMAND …`: the commands, each in a package of its own."""

import sys
from importlib import import_module

COMMANDS = {"draw": ("viz", "a model, a function or an operator as a picture"),
            "explore": ("viz.explore", "each line of a function, followed down to memory"),
            "export": ("export", "a model as C, WebAssembly or ONNX, to run without MiniPaddle"),
            "learn": ("learn", "exercises: list, check, watch, hint"),
            "plan": ("viz.plans", "how a training job is laid out on a cluster, and what it costs"),
            "run": ("as_paddle", "a script that imports paddle, as it is, on MiniPaddle"),
            "serve": ("serving", "saved models behind HTTP, in batches")}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the command that the arguments begin with; without one, list the commands."""
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        lines = [
            f"  python -m minipaddle {name:<7} {about}" for name, (_, about) in COMMANDS.items()
        ]
        asked = name in ("-h", "--help")
        print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    return import_module(f"minipaddle.{COMMANDS[name][0]}.command").main(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
