"""`python -m minipaddle COMMAND …`: the commands, each of which lives in a package of its own."""

import sys
from importlib import import_module

COMMANDS = {"draw": "viz", "learn": "learn"}


def main(arguments: list[str]) -> int:
    """Hand the arguments to the command they begin with."""
    package = COMMANDS.get(arguments[0] if arguments else "", "viz")  # which explains itself
    command = import_module(f"minipaddle.{package}.command")
    return command.main(arguments if package == "viz" else arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
