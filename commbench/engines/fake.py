"""The fake engine: every rank of a world on paper, on a virtual clock, in one process.

A collective on N ranks costs steps(N) * alpha_step + factor(N) * S / rate seconds of virtual time, with the alpha and
the rate of the link class that its group must cross, times the seeded noise and drift, and the slow ranks, slow links
and contention asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from commbench.engines.base import Call, Elapsed, Link, Seconds, Timed
from commbench.engines.fake_machine import FakeMachine, parse_fake_machine
from commbench.errors import UsageError
from commbench.plan.groups import Group, World
from commbench.plan.plan import Case

_DRIFT_STREAM = 1  # of random numbers, apart from that of the noise
PRODUCT_SECONDS = 100e-6  # of a matrix product on paper


class VirtualClock:
    """Seconds that pass only when a collective says so."""

    resolution_seconds = 0.0

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started = 0.0

    def start(self) -> None:
        self._started = self.seconds

    def stop(self) -> Elapsed:
        return Elapsed(self.seconds - self._started)


@dataclass
class FakeOverlap:
    """A product and a collective of these virtual seconds, each slower by its factor while the other runs."""

    product = "on paper"
    clock: VirtualClock
    call_seconds: float
    factors: tuple[float, float]

    def time_products(self, products: int, calls_beside: int) -> Timed:
        return self._run(products * PRODUCT_SECONDS, calls_beside * self.call_seconds, self.factors)

    def time_calls(self, calls: int, products_beside: int) -> Timed:
        return self._run(calls * self.call_seconds, products_beside * PRODUCT_SECONDS, self.factors[::-1])

    def _run(self, timed: float, beside: float, factors: tuple[float, float]) -> Timed:
        """What is beside ends first if it, slowed down, is the shorter: the rest then goes at its own pace."""
        if not beside:
            self.clock.seconds += timed
            return Timed(timed)
        both = min(timed * factors[0], beside * factors[1])
        seconds = both + (timed - both / factors[0])
        self.clock.seconds += seconds
        return Timed(seconds, timed * factors[0] <= beside * factors[1])


@dataclass
class FakeEngine:
    """All ranks of `world` on the virtual clock of `machine`."""

    world: World
    machine: FakeMachine
    seed: int = 0
    name = "fake"
    backend = "fake"
    data = None
    pci_address = None
    transport_errors: tuple[type[Exception], ...] = ()
    one_buffer: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.ranks: Sequence[int] = range(self.world.size)
        self.clock = VirtualClock()
        self._random = np.random.default_rng(self.seed)

    @property
    def stopwatch(self) -> VirtualClock:
        return self.clock

    def now_seconds(self) -> float:
        return self.clock.seconds

    def explain(self, error: Exception) -> str:
        return str(error)

    def unsupported(self, case: Case) -> str | None:
        return None

    def link(self, group: Group) -> Link:
        line = self.machine.line(self._link_class(group), nbytes=0)
        return Link(line.link_class, line.bytes_per_second, line.alpha_step_seconds)

    def available_nbytes(self) -> int:
        return 1 << 62  # paper is patient

    def needed_nbytes(self, case: Case) -> int:
        return 0

    def buffer_nbytes(self, case: Case) -> tuple[int, int]:
        return 0, 0

    def allocate(self, send_nbytes: int, receive_nbytes: int) -> None:
        pass

    def create_group(self, group: Group, timeout_seconds: float | None = None) -> None:
        pass

    def drop_group(self, group: Group) -> None:
        pass

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        return Call(group, me, self._advance(self.seconds(case, group) * self._drift(case, group)), None, None)

    def no_graph(self, case: Case) -> str | None:
        return None

    def capture(self, call: Call, calls: int) -> Callable[[], object]:
        """On paper a graph takes as long as its calls."""

        def run() -> None:
            for _ in range(calls):
                call.run()

        return run

    def exercise(self, seconds: float) -> None:
        pass

    def no_overlap(self, case: Case) -> str | None:
        return None

    def prepare_overlap(self, case: Case, group: Group, me: int) -> FakeOverlap:
        return FakeOverlap(self.clock, self.seconds(case, group), self.machine.overlap)

    def seconds(self, case: Case, group: Group) -> float:
        """Virtual seconds of one call of `case` on `group`, without noise."""
        nbytes = case.nbytes(group)
        line = self.machine.line(self._link_class(group), nbytes)
        ideal = max(1, case.spec.steps(group.size)) * line.alpha_step_seconds
        ideal += (case.spec.bus_factor(group.size) or 0.0) * nbytes / line.bytes_per_second
        shared = len(case.groups) > 1 and line.link_class == "net"
        return ideal * self.machine.slowdown(group.ranks) * (self.machine.contention if shared else 1.0)

    def barrier(self, group: Group | None = None) -> None:
        pass

    def max_reduce(self, values: Seconds) -> Seconds:
        return values

    def gather_texts(self, text: str) -> list[str]:
        return [text]

    def flight_record(self) -> str:
        return ""

    def close(self) -> None:
        pass

    def _link_class(self, group: Group) -> str:
        return "net" if self.world.nodes_of(group.ranks) > 1 else "nvlink"

    def _drift(self, case: Case, group: Group) -> float:
        """By how much this run is off, as a whole and in this case: drawn from the seed alone, so that it stays."""
        if not self.machine.drift:
            return 1.0
        run = np.random.default_rng((self.seed, _DRIFT_STREAM)).standard_t(3)
        own = np.random.default_rng((self.seed, _DRIFT_STREAM, 1 + case.index, 1 + group.ranks[0])).standard_t(3)
        return float(np.exp(self.machine.drift * (run + own)))

    def _advance(self, seconds: float) -> Callable[[], None]:
        clock, noise = self.clock, self.machine.noise

        def exact() -> None:
            clock.seconds += seconds

        def noisy() -> None:
            clock.seconds += seconds * float(np.exp(noise * abs(self._random.standard_t(3))))

        return noisy if noise else exact


def open_engine(*, ranks: int, spec: str, seed: int) -> FakeEngine:
    """A fake world of `ranks` ranks on the machine of `spec`. Raises UsageError for a spec it cannot read."""
    machine = parse_fake_machine(spec)
    strangers = [rank for rank in machine.named_ranks() if rank >= ranks]
    if strangers:
        raise UsageError(f"--fake names rank {strangers[0]} as slow, but the ranks are 0 to {ranks - 1}.")
    return FakeEngine(World.uniform(ranks, machine.ranks_per_node), machine, seed)
