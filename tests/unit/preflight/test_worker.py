"""The end of a preflight before its time: who is left out of the next job, and whom nobody can blame."""

import pytest

from commbench.preflight.clock import Clock
from commbench.preflight.conductor import Conductor
from commbench.preflight.levels import LEVELS
from commbench.preflight.request import Hints, PreflightRequest
from commbench.preflight.worker import _blame


@pytest.mark.parametrize(
    ("hosts", "silent", "culprits"),
    [
        (("n1", "n2", "n3"), (1,), ("n2",)),
        (("n1", "n2"), (1,), ("n2",)),
        (("n1", "n2", "n3"), (1, 2), ()),  # all others at once: it is rank 0's own link, or they have ended
        (("n1", "n1", "n2", "n2", "n3", "n3"), (2, 3), ("n2",)),
        (("n1", "?", "n3"), (1,), ()),
    ],
)
def test_who_gives_no_sign_of_life_is_to_blame_unless_it_is_all_other_nodes(
    hosts: tuple[str, ...], silent: tuple[int, ...], culprits: tuple[str, ...]
) -> None:
    clock = Clock(lambda: 0.0, 0.0, 60.0)
    conductor = Conductor(PreflightRequest(LEVELS["quick"], 60.0), Hints(), clock, hosts, lambda line: None)
    _blame(conductor, "it hangs", silent)
    outcome = conductor.outcome("it hangs", is_hang=True)
    assert outcome.exclude == culprits
    assert outcome.exit_code == (1 if culprits else 124)
