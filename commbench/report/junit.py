"""JUnit XML, which every CI system shows: suites of cases, whoever found them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["ok", "failure", "error", "skipped"]
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class JunitCase:
    """One checked thing. `failure`: it was seen to be wrong; `error`: the check itself failed; `skipped`: not seen.

    The message of an `ok` one becomes its output, which CI systems show beside it.
    """

    name: str
    classname: str
    outcome: Outcome = "ok"
    message: str = ""


def format_junit(suites: Mapping[str, Iterable[JunitCase]]) -> str:
    """The XML of these suites by name. What XML cannot hold is written as `?`."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    results = {"failure": Failure, "error": Error, "skipped": Skipped}
    document: Any = JUnitXml()
    for suite_name, cases in suites.items():
        suite = TestSuite(_text(suite_name))
        for case in cases:
            written = TestCase(_text(case.name), _text(case.classname))
            if case.outcome in results:
                written.result = [results[case.outcome](_text(case.message))]
            elif case.message:
                written.system_out = _text(case.message)
            suite.add_testcase(written)
        document.add_testsuite(suite)
    document.update_statistics()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document.tostring().decode()}\n'


def _text(text: str) -> str:
    return _NOT_XML.sub("?", text)
