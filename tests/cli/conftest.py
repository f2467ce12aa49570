"""The command line in this process."""

from collections.abc import Callable

import pytest

from commbench.cli import main
from tests.conftest import Ended

Call = Callable[..., Ended]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `commbench` with these arguments and say how it ended."""

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        code = 0
        try:
            main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run
