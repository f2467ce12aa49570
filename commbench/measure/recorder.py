"""Takes what a session tells and writes it to the run's directory, a flush a visit; shows progress beside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from commbench.measure.case_state import CaseState, Measured, describe
from commbench.measure.witness import Evidence
from commbench.plan.plan import Case
from commbench.results.schema import Finding, GroupRecord, Outcome, OverlapRecord, SampleRow
from commbench.results.summary import summarize_group
from commbench.results.writer import RunWriter


class Progress(Protocol):
    """Shows how far a run is. Called between visits."""

    def update(self, closed: int, seconds: float, latest: str) -> None:
        """`closed` cases are done, `seconds` of measuring have passed, `latest` was measured last."""
        ...

    def finish(self) -> None:
        """Leave the terminal as it was."""
        ...


class Recorder:
    """The observer of rank 0. `closed`: cases that were done before it came."""

    def __init__(self, writer: RunWriter, progress: Progress, closed: int = 0) -> None:
        self.directory: Path = writer.directory
        self._writer = writer
        self._progress = progress
        self._cases = {case.index: case for case in writer.record.cases}
        self._closed = closed
        self._seconds = 0.0

    @property
    def groups(self) -> tuple[GroupRecord, ...]:
        """The groups of the run, with what is known of their links."""
        return self._writer.record.groups

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        self._seconds = seconds
        positions = self._cases[case.index].groups
        self._writer.add_samples(row for batches in measured for row in _sample_rows(case.index, positions, batches))
        self._progress.update(self._closed, seconds, describe(case))

    def closed(self, state: CaseState) -> None:
        self._closed += 1
        record, run = self._cases[state.case.index], self._writer.record
        self._writer.add_summary(
            summarize_group(
                record,
                run.groups[position],
                samples,
                engine=run.engine,
                backend=run.backend,
                status=state.status or "missing",
                reason=state.reason,
            )
            for position, samples in zip(record.groups, state.samples, strict=True)
        )
        self._progress.update(self._closed, self._seconds, describe(state.case))

    def keep_overlap(self, records: Sequence[OverlapRecord]) -> None:
        """What --overlap has found until now."""
        self._writer.add_overlap(records)

    def keep_findings(self, findings: Sequence[Finding]) -> None:
        """What was seen of the machine when all was measured."""
        self._writer.add_findings(findings)

    def keep_evidence(self, evidence: Evidence) -> None:
        """What NCCL's log has told, when all is measured."""
        if evidence.groups != self._writer.record.groups:
            self._writer.set_groups(evidence.groups)
        self._writer.add_findings(evidence.findings)

    def finish(self, outcome: Outcome, seconds: float) -> None:
        """The run is over, in good order."""
        self._writer.complete_summary()
        self._end(outcome, seconds)

    def abandon(self, outcome: Outcome) -> str:
        """The run ends early: keep what there is, and say where."""
        self._end(outcome, self._seconds)
        return f"What was measured is kept in {self.directory}."

    def _end(self, outcome: Outcome, seconds: float) -> None:
        self._progress.finish()
        self._writer.finish(outcome, seconds)


class Unrecorded:
    """The observer of every other rank: what it would keep, rank 0 keeps."""

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        pass

    def closed(self, state: CaseState) -> None:
        pass


def _sample_rows(case: int, positions: Sequence[int], batches: Measured) -> list[SampleRow]:
    enqueue = batches.enqueue_seconds
    return [
        SampleRow(
            case=case,
            group=position,
            kind=batches.kind,
            round=batches.round,
            calls=batches.calls[index],
            seconds=float(seconds),
            enqueue_seconds=None if enqueue is None else float(enqueue[index, batch]),
            wrong=batches.wrong[index] if batches.wrong else None,
        )
        for index, position in enumerate(positions)
        for batch, seconds in enumerate(batches.seconds[index])
    ]
