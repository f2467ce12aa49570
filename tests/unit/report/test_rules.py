"""docs/checks.md holds the rules that there are."""

from commbench.checks.registry import Rule, load_rules
from commbench.report.rules import format_rules_markdown
from tests.conftest import REPOSITORY

BEGIN, END = "<!-- rules: made by scripts/generate_rules_page -->\n", "<!-- end of the rules -->\n"


def test_the_page_of_checks_has_every_rule_as_it_is() -> None:
    page = (REPOSITORY / "docs" / "checks.md").read_text()
    shown = page.partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == format_rules_markdown(load_rules()).strip(), "run ./scripts/run scripts/generate_rules_page"


def test_a_table_for_each_family_with_signs_of_markdown_escaped() -> None:
    rules = [
        Rule("SW-A", "fail", "a|b", "do", "C *std*", "", lambda scene: []),
        Rule("HOST-A", "warn", "sum", "do", "who", "", lambda scene: []),
    ]
    assert format_rules_markdown(rules) == (
        "### HOST: limits, memory, kernel settings\n\n"
        "| rule | at worst | what is right | source |\n| --- | --- | --- | --- |\n| `HOST-A` | warn | sum | who |\n\n"
        "### SW: versions and libraries\n\n"
        "| rule | at worst | what is right | source |\n| --- | --- | --- | --- |\n"
        "| `SW-A` | fail | a\\|b | C \\*std\\* |\n"
    )
