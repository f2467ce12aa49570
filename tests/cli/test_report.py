"""`commbench report` and its page: where it goes, how it fails, and what a browser makes of it."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from PIL import Image

from tests.browser import Page, open_browser
from tests.cli.conftest import Call
from tests.conftest import REPOSITORY, need_program

SCRIPT = "<script>alert(1)</script>"
EXAMPLE = REPOSITORY / "results" / "example-gloo-2-ranks"
MACHINE = "ranks-per-node=1,net=10us:400mbit,net@64K=60us:1GB/s,slow-rank=2:4,noise=2%"


SWEEP = ["sweep", "--engine", "fake", "--ranks", "4", "--no-plots", "-q"]


def measure(call: Call, directory: Path) -> Path:
    assert call(*SWEEP, "--collectives", "all_reduce", "--sizes", "1K,1M", "--out", str(directory)).code == 0
    return directory


@pytest.fixture
def run(call: Call, tmp_path: Path) -> Path:
    return measure(call, tmp_path / "run")


def test_the_page_lies_in_the_run_and_is_overwritten(run: Path, call: Call) -> None:
    page = run / "report.html"
    page.write_text("an old one")
    ended = call("report", "--no-plots", str(run))
    assert (ended.code, ended.err) == (0, f"report: {page}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert not (run / "plots").exists()


def test_several_runs_are_one_page_here(run: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    other = measure(call, tmp_path / "other")
    ended = call("report", "--no-plots", str(run), str(other), str(run))
    assert (ended.code, ended.err) == (0, "report: report.html\n")
    assert "2 runs, overlaid" in Path("report.html").read_text()
    assert not (run / "report.html").exists()


def test_the_page_goes_where_it_is_told(run: Path, call: Call, tmp_path: Path) -> None:
    page = tmp_path / "elsewhere.html"
    assert call("report", "--no-plots", "--html", str(page), str(run)).code == 0
    assert page.exists()
    assert not (run / "report.html").exists()


def test_no_page_where_none_is_wanted(run: Path, call: Call) -> None:
    assert call("report", "--no-plots", "--no-html", str(run)).err == ""
    assert not (run / "report.html").exists()


def test_a_page_that_cannot_be_written(run: Path, call: Call, tmp_path: Path) -> None:
    page = tmp_path / "missing" / "report.html"
    ended = call("report", "--no-plots", "--html", str(page), str(run))
    assert ended.code == 3
    assert ended.err == f"commbench: cannot write {page}: No such file or directory; use --no-html or --html FILE.\n"


def test_a_page_and_none_at_once(run: Path, call: Call) -> None:
    ended = call("report", "--html", "x.html", "--no-html", str(run))
    assert ended.code == 2
    assert "exclude each other" in ended.err


def test_too_many_runs_for_one_page(call: Call, tmp_path: Path) -> None:
    runs = [str(measure(call, tmp_path / f"run{number}")) for number in range(11)]
    ended = call("report", "--no-plots", "--html", str(tmp_path / "all.html"), *runs)
    assert ended.code == 0
    assert ended.err.startswith("the page shows the first 10 of 11 runs.\n")
    assert ended.out.count("all_reduce ") >= 2 * 11


def test_the_templates_are_installed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copytree(REPOSITORY / "commbench", source / "commbench", ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((REPOSITORY / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*pip, str(source)], check=True, stderr=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("*.whl")
    templates = {path.name for path in (REPOSITORY / "commbench" / "report" / "templates").iterdir()}
    packed = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/report/templates/" in name}
    assert packed == templates != set()


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = need_program("chromium")
    with open_browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with everything that one can show, whose hosts are called as a script is written."""
    run = tmp_path_factory.mktemp("hostile") / "run"
    layouts = [word for name in ("world", "pairs", "ladder") for word in ("--layout", name)]
    machine = ["--sizes", "1K:1M:x4", "--fake", MACHINE, "--link-rate", "net=1GB/s"]
    commbench(*SWEEP, *layouts, *machine, "--out", str(run))
    record = json.loads((run / "run.json").read_text())
    for host in record["hosts"]:
        host["name"] = SCRIPT
    record["environment"] = {"NCCL_ALGO": SCRIPT}
    (run / "run.json").write_text(json.dumps(record))
    commbench("report", "--no-plots", str(run))
    return run / "report.html"


def commbench(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "commbench", *arguments], check=True, capture_output=True)


def test_a_browser_shows_it_and_complains_of_nothing(hostile: Path, browser: Page) -> None:
    browser.open(hostile)
    headings = browser.evaluate("[...document.querySelectorAll('h2')].map(heading => heading.innerText)")
    assert {"What was measured, and on what", "Pairs, rank by rank", "Scaling over the ladder", "Findings"} <= set(
        headings
    )
    complaints = (
        "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown",
        "Log.entryAdded",
        "Page.javascriptDialogOpening",
    )
    assert browser.reported(*complaints) == []


def test_a_browser_loads_nothing_but_the_page(hostile: Path, browser: Page) -> None:
    browser.open(hostile)
    requested = [event["request"]["url"] for event in browser.reported("Network.requestWillBeSent")]
    assert requested == [hostile.as_uri()]


def test_a_script_in_a_name_stays_text(hostile: Path, browser: Page) -> None:
    browser.open(hostile)
    assert browser.evaluate("document.scripts.length") == 0
    text = browser.evaluate("document.getElementById('facts').innerText")
    assert f"{SCRIPT} (ranks 0)" in text
    assert SCRIPT in browser.evaluate("document.querySelector('svg.heat').textContent")


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_not_blank(hostile: Path, browser: Page, dark: bool) -> None:
    browser.open(hostile, dark=dark)
    picture = Image.open(BytesIO(browser.screenshot())).convert("L")
    background = picture.getpixel((2, 2))
    assert isinstance(background, int)
    assert (background < 64) is dark
    shades = picture.histogram()
    assert shades[background] / sum(shades) > 0.5
    assert sum(count > 50 for count in shades) > 100


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(hostile: Path, browser: Page, width: int) -> None:
    browser.open(hostile, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_every_drawing_has_its_size(hostile: Path, browser: Page) -> None:
    browser.open(hostile)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('svg.plot, svg.heat')].map(svg => svg.getBoundingClientRect())"
        ".map(box => [box.width, box.height])"
    )
    assert len(sizes) >= 8
    assert all(width > 300 and height > 120 for width, height in sizes)


def test_it_prints(hostile: Path, browser: Page) -> None:
    browser.open(hostile)
    assert browser.pdf().startswith(b"%PDF-")
