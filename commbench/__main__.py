"""`commbench` and `python -m commbench`: the program, from its arguments to its exit."""

import atexit
import os
import sys
from contextlib import suppress

from commbench.cli import main


def run() -> None:
    """Run the command line, and leave without taking torch apart: that is a second which nobody needs to wait for."""
    code: object = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code or 0
    atexit._run_exitfuncs()
    with suppress(BrokenPipeError, ValueError):  # the reader has left
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    run()
