"""Counts the calls inside the package that a call takes, in a process in which it is the first."""

import os
import subprocess
import sys
from pathlib import Path

COUNTED = """
import os, sys
import minipaddle as paddle

root = os.path.dirname(paddle.__file__)

def counted(function, see=lambda code: True):
    # How many calls inside the package there are, of those that `see` sees, and in how many files.
    calls = []

    def count(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and see(code):
            calls.append(code)

    sys.setprofile(count)
    function()
    sys.setprofile(None)
    return len(calls), len({code.co_filename for code in calls})
"""


def printed_by(script: str, folder: Path) -> list[int]:
    """The numbers that a script prints; it may call `counted`."""
    file = folder / "script.py"
    file.write_text(COUNTED + script)
    own = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    own["MINIPADDLE_CACHE"] = str(folder)
    out = subprocess.run([sys.executable, str(file)], env=own, capture_output=True, check=True)
    return [int(word) for word in out.stdout.split()]
