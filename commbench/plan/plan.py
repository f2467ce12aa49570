"""The plan: every case of a run, in the order of the table, and the shuffled order in which a round measures them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from commbench.plan.collectives import COLLECTIVES, Blocks, Collective, Placement
from commbench.plan.dtypes import DTYPES, NO_REDOP, Dtype
from commbench.plan.groups import Group, Wave, World, cut_world
from commbench.plan.modes import Concurrency, Mode


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What was asked for, as the command line says it. `in_place`: in place wherever that is defined."""

    collectives: tuple[str, ...]
    sizes_nbytes: tuple[int, ...]
    layouts: tuple[str, ...]
    dtypes: tuple[str, ...] = ("float32",)
    redops: tuple[str, ...] = ("sum",)
    concurrencies: tuple[Concurrency, ...] = ("together",)
    mode: Mode = "throughput"
    in_place: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure: a collective at a size on the groups that run at the same time.

    `requested_nbytes` is the size asked for; `count` and `nbytes` are what a group really moves.
    """

    index: int
    collective: str
    requested_nbytes: int
    dtype: str
    redop: str
    in_place: bool
    mode: Mode
    layout: str
    concurrency: Concurrency
    groups: tuple[Group, ...]

    @property
    def spec(self) -> Collective:
        return COLLECTIVES[self.collective]

    @property
    def element(self) -> Dtype:
        return DTYPES[self.dtype]

    def count(self, group: Group) -> int:
        """Whole elements in one block."""
        return self.spec.count(self.requested_nbytes, self.element.itemsize, group.size)

    def nbytes(self, group: Group) -> int:
        """The true size S."""
        return self.spec.nbytes(self.count(group), self.element.itemsize, group.size)

    @property
    def too_small(self) -> str | None:
        """Why no element is left for some rank; None if every group has one."""
        for group in self.groups:
            if self.spec.send is not Blocks.NONE and self.count(group) == 0:
                return (
                    f"{self.requested_nbytes} B is less than one {self.dtype} for each of the {group.size} ranks"
                    if self.spec.per_rank
                    else f"{self.requested_nbytes} B is less than one {self.dtype}"
                )
        return None


def build_plan(request: PlanRequest, world: World, one_buffer: frozenset[str] = frozenset()) -> list[Case]:
    """Every case of `request` on `world`, sizes fastest, numbered from 0.

    `one_buffer`: the collectives that the engine's library offers in place only, such as torch's all_reduce; they are
    planned in place whatever was asked, and the results say so. Raises UsageError if a layout does not fit the world.
    """
    waves = [wave for text in request.layouts for wave in cut_world(world, text)]
    cases: list[Case] = []
    for name in request.collectives:
        spec = COLLECTIVES[name]
        in_place = name in one_buffer or (request.in_place and spec.placement is not Placement.NEVER)
        for dtype, redop, sizes in _variants(request, spec):
            for layout, concurrency, groups in _timed_together(waves, request.concurrencies):
                for nbytes in sizes:
                    cases.append(
                        Case(
                            len(cases),
                            name,
                            nbytes,
                            dtype,
                            redop,
                            in_place,
                            request.mode,
                            layout,
                            concurrency,
                            groups,
                        )
                    )
    return cases


def shuffled(cases: Sequence[Case], seed: int, round_number: int) -> list[Case]:
    """The cases in the order of one round: the same on every rank, another one each round."""
    order = list(cases)
    random.Random(f"{seed}/{round_number}").shuffle(order)
    return order


def _variants(request: PlanRequest, spec: Collective) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    if spec.send is Blocks.NONE:  # a barrier has neither data nor size
        yield request.dtypes[0], NO_REDOP, (0,)
        return
    for dtype in request.dtypes:
        for redop in request.redops if spec.reduces else (NO_REDOP,):
            yield dtype, redop, request.sizes_nbytes


def _timed_together(
    waves: Sequence[Wave], concurrencies: Sequence[Concurrency]
) -> Iterator[tuple[str, Concurrency, tuple[Group, ...]]]:
    for wave in waves:
        if len(wave.groups) == 1:  # nobody to run beside
            yield wave.layout, "alone", wave.groups
            continue
        for concurrency in concurrencies:
            if concurrency == "together":
                yield wave.layout, concurrency, wave.groups
            else:
                yield from ((wave.layout, concurrency, (group,)) for group in wave.groups)
