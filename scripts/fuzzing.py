"""What the fuzzers of foreign formats share: mutated inputs, a process for each sample, a line for each result."""

import argparse
import multiprocessing
import random
import resource
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from commbench.errors import CommbenchError
from tests.unit.results.importers.mutate import mutate

NUMBER = 20_000
MAX_SECONDS, MAX_MIB = 2.0, 1024.0
Read = Callable[[bytes, str | None], object]  # raises CommbenchError for what it refuses
Samples = Mapping[str, tuple[str, bytes]]  # by name: the format and a good input of it


@dataclass
class Result:
    """What came of one sample's mutants."""

    read: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0  # of CPU, as all times here
    mib: float = 0.0


def _fuzz(name: str, samples: Samples, read: Read, number: int, results: "multiprocessing.Queue[Result]") -> None:
    format_name, data = samples[name]
    others = [other for _, other in samples.values()]
    result, rng = Result(), random.Random(f"0/{name}")
    began = time.process_time()
    for _ in range(number):
        mutant = mutate(data, rng, others)
        started = time.process_time()
        try:
            read(mutant, format_name if rng.random() < 0.5 else None)
            result.read += 1
        except CommbenchError as error:
            result.refused += 1
            if "\n" in str(error) or not str(error).endswith("."):
                result.failures.append(f"not a sentence: {error!r}\n{mutant!r}")
        except Exception:  # noqa: BLE001 - failures of any kind are what is looked for
            result.failures.append(f"{traceback.format_exc()}\n{mutant!r}")
        took = time.process_time() - started
        if took > MAX_SECONDS:
            result.failures.append(f"took {took:.1f} s\n{mutant[:2000]!r}")
        result.slowest = max(result.slowest, took)
    result.seconds = time.process_time() - began
    result.mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put(result)


def _run(name: str, samples: Samples, read: Read, number: int) -> Result | None:
    """The result of a process that fuzzes one sample; None if it died."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_fuzz, args=(name, samples, read, number, results))
    process.start()
    while process.is_alive() and results.empty():
        process.join(0.2)
    result = results.get() if not results.empty() else None
    process.join()
    return result


def main(description: str | None, samples: Samples, read: Read) -> int:
    """Fuzz all samples, or those of the formats on the command line; the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("number", nargs="?", type=int, default=NUMBER)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="of these alone")
    asked = parser.parse_args()
    failed = False
    for name, (format_name, _) in samples.items():
        if asked.formats and format_name not in asked.formats:
            continue
        result = _run(name, samples, read, asked.number)
        if result is None:
            print(f"{name:<24} the process died", flush=True)
            failed = True
            continue
        print(
            f"{name:<24} {asked.number:>7} inputs {result.read:>7} read {result.refused:>7} refused "
            f"{len(result.failures):>4} failures {result.seconds:>7.1f} s, slowest {result.slowest * 1e3:>6.1f} ms, "
            f"{result.mib:>5.0f} MiB",
            flush=True,
        )
        for failure in result.failures[:3]:
            print(failure[:4000], flush=True)  # the reason comes first
        failed = failed or bool(result.failures) or result.mib > MAX_MIB
    return 1 if failed else 0
