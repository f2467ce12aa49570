"""AIConfigurator's nccl_perf tables, Parquet or CSV: message size in elements, latency in milliseconds."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO, StringIO
from itertools import islice
from typing import Any

from commbench.errors import CommbenchError
from commbench.results.importers.documents import number, text_of, whole
from commbench.results.importers.lines import MAX_LINE, decode, shown
from commbench.results.importers.numbers import read_collective, read_dtype
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Source
from commbench.results.kinds import ITEMSIZES
from commbench.results.schema import UNKNOWN, Finding, Host

_COLUMNS = ("op_name", "nccl_dtype", "num_gpus", "message_size", "latency")
_MORE = ("version", "device", "framework")
_MAGIC = b"PAR1"
_MAX_ROWS = 200_000  # a hundred times the largest known
_MAX_NBYTES = 256 << 20
_MEANS = "mean over calls back to back (nccl-tests, as AIConfigurator collected it)"


def recognises(data: bytes) -> bool:
    """Whether bytes are Parquet, or text whose first line has the columns of nccl_perf."""
    if data.startswith(_MAGIC):
        return True
    first = data[:MAX_LINE].split(b"\n", 1)[0]
    return b"op_name" in first and b"message_size" in first and b"latency" in first


def read(source: Source) -> list[ForeignTable]:
    """A table for every collective and number of GPUs. Raises CommbenchError for Parquet that cannot be read."""
    records: Iterable[Mapping[str, Any]] = _parquet(source) if source.data.startswith(_MAGIC) else _csv(source)
    tables: dict[tuple[str, int, str, str], list[ForeignRow]] = {}
    lost = []
    for line, record in enumerate(records, start=1):
        row, ranks = _row(record, line), whole(record.get("num_gpus"))
        name = read_collective(text_of(record.get("op_name"), ""))
        if row is None or not ranks or name is None:
            lost.append(LostLine(line, shown(str([record.get(key) for key in _COLUMNS])), "a value of it is not there"))
            continue
        key = (name, ranks, text_of(record.get("version"), UNKNOWN), text_of(record.get("device"), UNKNOWN))
        tables.setdefault(key, []).append(row)
    made = [_table(key, rows, source) for key, rows in tables.items()]
    if lost:
        none = ForeignTable("aiconfigurator", "nccl", "throughput", _MEANS, (), lost=tuple(lost[:1000]))
        made.append(none)
    return made


def _row(record: Mapping[str, Any], line: int) -> ForeignRow | None:
    dtype = read_dtype(text_of(record.get("nccl_dtype"), ""))
    itemsize, elements = ITEMSIZES[dtype], whole(record.get("message_size"))
    seconds = number(record.get("latency"), 1e-3)
    if itemsize is None or elements is None or seconds is None or seconds.value <= 0:
        return None
    return ForeignRow(line, elements * itemsize, seconds, dtype=dtype)


def _table(key: tuple[str, int, str, str], rows: list[ForeignRow], source: Source) -> ForeignTable:
    name, ranks, version, device = key
    found = Finding(
        "placement-unknown", name, "skip", "the table does not say whether it was in place", "", source.name
    )
    return ForeignTable(
        "aiconfigurator", "nccl", "throughput", _MEANS, tuple(rows), name, ranks=ranks, nodes=source.hints.nodes,
        hosts=(Host(UNKNOWN, "", None, "", devices=(device,)),) if device != UNKNOWN else (), findings=(found,),
        versions=(("nccl", version),) if version != UNKNOWN else (),
    )  # fmt: skip


def _csv(source: Source) -> Iterator[dict[str, str | None]]:
    try:
        yield from islice(csv.DictReader(StringIO(decode(source.data)), restkey="more"), _MAX_ROWS)
    except csv.Error as error:
        raise CommbenchError(f"{source.name} does not read as CSV: {error}.") from error


def _parquet(source: Source) -> list[dict[str, Any]]:
    """The rows of a Parquet file that is not larger unpacked than is safe. pyarrow is loaded here, and here only."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise CommbenchError(
            f"{source.name} is Parquet, and reading it needs the package pyarrow: pip install 'commbench[parquet]'."
        ) from error
    try:
        file = pq.ParquetFile(BytesIO(source.data))
        groups = range(file.metadata.num_row_groups)
        nbytes = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if file.metadata.num_rows > _MAX_ROWS or not 0 <= nbytes <= _MAX_NBYTES:
            raise CommbenchError(f"{source.name} has {file.metadata.num_rows} rows, more than {_MAX_ROWS}: cut it.")
        names = [name for name in (*_COLUMNS, *_MORE) if name in file.schema_arrow.names]
        if missing := [name for name in _COLUMNS if name not in names]:
            raise CommbenchError(f"{source.name} is Parquet without the columns {', '.join(missing)} of nccl_perf.")
        rows: list[dict[str, Any]] = file.read(columns=names, use_threads=False).to_pylist()
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        raise CommbenchError(f"{source.name} does not read as Parquet: {shown(str(error))}.") from error
    return rows
