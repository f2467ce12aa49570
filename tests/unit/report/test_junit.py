"""JUnit XML, read back by another parser."""

from xml.etree import ElementTree

from commbench.report.junit import JunitCase, format_junit


def test_suites_cases_and_counts() -> None:
    text = format_junit(
        {
            "links": [
                JunitCase("B of net", "compare.links", "failure", "down 10 %"),
                JunitCase("alpha", "compare.links"),
            ],
            "cases": [JunitCase("a", "c", "skipped", "noise"), JunitCase("b", "c", "error", "no file")],
        }
    )
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = ElementTree.fromstring(text)
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == ["links", "cases"]
    failed, fine = root[0]
    assert (failed.get("name"), failed.get("classname")) == ("B of net", "compare.links")
    assert failed[0].tag == "failure"
    assert failed[0].get("message") == "down 10 %"
    assert list(fine) == []
    assert [case[0].tag for case in root[1]] == ["skipped", "error"]


def test_hostile_words_are_text() -> None:
    message = 'a <b> & "c" \x00\x1b[31m \ud800 \U0001f600'
    (suite,) = ElementTree.fromstring(format_junit({"<s>": [JunitCase("\x07n", "c", "failure", message)]}))
    assert suite.get("name") == "<s>"
    assert suite[0].get("name") == "?n"
    assert suite[0][0].get("message") == 'a <b> & "c" ??[31m ? \U0001f600'


def test_nothing_is_an_empty_document() -> None:
    assert list(ElementTree.fromstring(format_junit({}))) == []
