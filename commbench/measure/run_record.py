"""What run.json says of a run before its first case: what was asked, on what, with which groups."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from commbench.engines.base import Engine
from commbench.launch.environment import RankPlace
from commbench.machine.binding import bind_threads
from commbench.machine.host import read_host
from commbench.machine.software import kept_environment, versions
from commbench.measure.request import SweepRequest
from commbench.measure.witness import Witness
from commbench.plan.groups import Group, format_ranks
from commbench.plan.plan import Case
from commbench.results.schema import SCHEMA_VERSION, CaseRecord, Finding, GroupRecord, Host, RunRecord

if TYPE_CHECKING:
    from commbench.measure.wiring import Wiring


def describe_run(
    request: SweepRequest,
    engine: Engine,
    place: RankPlace | None,
    cases: Sequence[Case],
    groups: Sequence[tuple[str, Group]],
    busy: float,
    interface: str,
    witness: Witness,
    findings: Sequence[Finding] = (),
) -> RunRecord:
    """Bind this rank's threads, unless `busy` programs forbid it, and gather what all ranks have to tell."""
    binding = ""
    if place is not None:  # after the groups: the library has started its threads
        binding = bind_threads(request.bind, place.local_rank, place.local_size, engine.pci_address, busy)
    positions = {key: position for position, key in enumerate(groups)}
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        command=request.command,
        engine=engine.name,
        backend=engine.backend,
        launcher=place.launcher if place else "none",
        world_size=engine.world.size,
        seed=request.plan.seed,
        precision=request.rules.precision,
        budget_seconds=request.rules.budget_seconds,
        layouts=request.plan.layouts,
        hosts=_gather_hosts(engine, binding, interface),
        groups=tuple(
            _group_record(engine, witness.wiring, layout, group, dict(request.link_rates)) for layout, group in groups
        ),
        cases=tuple(_case_record(case, positions, request.variant) for case in cases),
        versions=versions(),
        environment=kept_environment({name: os.environ[name] for name in os.environ.keys() - witness.settings}),
        findings=tuple(findings),
        environment_set=witness.settings,
    )


def _gather_hosts(engine: Engine, binding: str, interface: str) -> tuple[Host, ...]:
    """One record a node: the facts of its first rank, and the binding of each of its ranks."""
    texts = engine.gather_texts(json.dumps(asdict(replace(read_host(), binding=binding, interface=interface))))
    facts = [Host(**json.loads(text)) for text in texts]
    if len(facts) < engine.world.size:  # one process plays all ranks, on nodes of paper
        nodes = engine.world.ranks_by_node()
        names = [f"node{node}" for node in range(len(nodes))] if len(nodes) > 1 else [facts[0].name]
        return tuple(
            replace(facts[0], name=name, ranks=format_ranks(ranks), binding="none")
            for name, ranks in zip(names, nodes, strict=True)
        )
    return tuple(
        replace(
            facts[ranks[0]],
            ranks=format_ranks(ranks),
            binding="; ".join(f"rank {rank}: {facts[rank].binding}" for rank in ranks),
        )
        for ranks in engine.world.ranks_by_node()
    )


def _group_record(
    engine: Engine, wiring: "Wiring | None", layout: str, group: Group, link_rates: Mapping[str, float]
) -> GroupRecord:
    wired = wiring.link(group) if wiring else None
    link = wired or engine.link(group)
    return GroupRecord(
        layout=layout,
        name=group.name,
        ranks=format_ranks(group.ranks),
        size=group.size,
        nodes=engine.world.nodes_of(group.ranks),
        link_class=link.link_class,
        bytes_per_second=link_rates.get(link.link_class, link.bytes_per_second),
        alpha_step_seconds=link.alpha_step_seconds,
        link_source="wiring" if wired else "",
    )


def _case_record(case: Case, positions: Mapping[tuple[str, Group], int], variant: str) -> CaseRecord:
    foreign = ("groups", "variant")  # positions instead of groups; the variant is the whole run's
    kept = {field.name: getattr(case, field.name) for field in fields(CaseRecord) if field.name not in foreign}
    return CaseRecord(**kept, groups=tuple(positions[case.layout, group] for group in case.groups), variant=variant)
