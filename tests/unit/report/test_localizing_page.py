"""The example of docs/localizing.md says what it prints."""

import re

import pytest

from tests.conftest import REPOSITORY


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPOSITORY / "docs" / "localizing.md").read_text()
    match = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert match is not None
    exec(match[1], {})
    assert capsys.readouterr().out == match[2]
