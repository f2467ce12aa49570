"""Docs, help and examples cannot drift apart."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from commbench.cli import COMMANDS, cli
from commbench.cli.sweep import sweep
from commbench.report.formats import FORMATS
from commbench.results.store import load_run, read_samples
from tests.cli.conftest import Call
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
EXAMPLES = sorted((REPOSITORY / "results").glob("example-*"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_has_help_with_an_example(name: str, call: Call) -> None:
    assert f"commbench {name}" in README
    ended = call(name, "--help")
    assert ended.code == 0
    assert re.search(rf"^ +commbench {name}", ended.out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_the_options_of_sweep_are_a_contract() -> None:
    """Scripts depend on them: one that goes, or is renamed, is a decision, not an accident."""
    promised = (
        "--collectives --sizes --layout --concurrency --ranks --engine --backend --dtype --redop --mode --precision "
        "--budget --in-place --no-verify --bind --timeout --seed --out --resume --link-rate --format -o -q -v"
    )
    offered = {name for option in sweep.params for name in (*option.opts, *option.secondary_opts)}
    assert set(promised.split()) <= offered


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"\b(?:scripts|docs|tests|results)/[\w./-]*\w", text)) | set(
        re.findall(r"\]\(([\w./-]+)\)", text)
    )
    named |= {
        f"commbench/{path}"
        for path in re.findall(r"`((?:plan|engines|report|results|measure|analysis)/\w+\.py)`", text)
    }
    ours = {
        path
        for path in named
        if "<" not in path and path not in ("results/RUN", "docs/measuring.md", "docs/fitting.md")
    }
    roots = (REPOSITORY, page.parent, REPOSITORY / "commbench")
    assert ours
    assert {path for path in ours if not any((root / path).exists() for root in roots)} == set()


@pytest.mark.parametrize("directory", EXAMPLES, ids=lambda directory: directory.name)
def test_every_example_run_loads(directory: Path) -> None:
    run = load_run(directory)
    assert run.record.outcome == "complete"
    assert run.rows
    assert {row.status for row in run.rows} <= {"ok", "noisy"}
    assert sum(1 for row in read_samples(directory) if row.kind == "batch") == sum(row.samples for row in run.rows)
    assert directory.name in (REPOSITORY / "results" / "README.md").read_text()
    assert {path.name for path in (directory / "plots").iterdir()} == {"busbw.png", "time.png"}


def test_the_readme_shows_the_table_of_its_example() -> None:
    shown = re.search(r"```\n(commbench .*?)```", README, re.DOTALL)
    assert shown is not None
    assert shown[1] == FORMATS["table"](load_run(REPOSITORY / "results" / "example-gloo-2-ranks"))


def test_the_readme_names_every_exit_code() -> None:
    codes = re.search(r"Exit codes, for scripts: ([^.]*)\.", README)
    assert codes is not None
    assert re.findall(r"\b(\d+) ", codes[1]) == ["0", "1", "2", "3", "124", "130"]


def test_the_changelog_tells_of_every_command() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert [name for name in COMMANDS if f"commbench {name}" not in changelog] == []


def test_every_script_that_no_test_runs_is_at_least_type_checked() -> None:
    checked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    scripts = (REPOSITORY / "scripts").iterdir()
    assert {path.name for path in scripts if re.fullmatch(r"(bench|fuzz|generate)_\w+", path.name)} <= {
        name.removeprefix("scripts/") for name in checked
    }
