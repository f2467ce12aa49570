"""Small models, layouts and questions for tests of estimates."""

from dataclasses import replace
from typing import Any

from commbench.analysis.estimate.layout import Layout, Work
from commbench.analysis.estimate.model import SIZES, Model, make_model
from commbench.analysis.estimate.rates import GivenRates, Links, choose_links
from commbench.analysis.estimate.step import Question
from commbench.plan.links import LinkLine

UNKNOWN_LINKS = Links(None, None, ())


def named(name: str | None = None, **sizes: int) -> Model:
    """A model of the table, or one of these sizes."""
    return make_model(name, {**dict.fromkeys(SIZES), **sizes})


def lines(**rates: float | tuple[float, float]) -> Links:
    """Links of these rates, or of (rate, alpha of a step)."""
    made = [LinkLine(name, *(rate if isinstance(rate, tuple) else (rate,))) for name, rate in rates.items()]
    return choose_links([GivenRates(made)], None, None)


def question(model: Model, layout: Layout, work: Work, **changes: Any) -> Question:
    """On nodes of 8 ranks, without rates."""
    return replace(Question(model, layout, work, 8, UNKNOWN_LINKS), **changes)
