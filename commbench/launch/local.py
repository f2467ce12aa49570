"""Local workers, through torch's elastic launcher: forked from a server that has torch loaded and no other thread.

Not forked from the launcher itself: its store answers in threads, and a fork in the moment in which one of them holds a
lock of the C library (the resolver's, as seen) waits for that lock for ever.

The one room outside engines/ that imports torch: the launcher is torch's, the workers need it a moment later.
"""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import forkserver
from typing import Any
from uuid import uuid4

import psutil

from commbench.errors import CommbenchError, InterruptedRunError
from commbench.launch.environment import LOOPBACK

# Elastic gives a worker 30 s after SIGTERM; one that is stopped never takes it, and there is nothing to wait for.
# Those that live first find out and say who is missing.
_REAP_AFTER_SECONDS = 8.0
_OUR_EXIT_CODES = frozenset({1, 2, 3, 124})


class WorkerDiedError(CommbenchError):
    """A worker ended before its time, in a way it could not report itself."""


class WorkerExitError(CommbenchError):
    """A worker ended the run, and has said why; `exit_code` is the one that it left."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"a worker ended the run with exit code {exit_code}")
        self.exit_code = exit_code


def warm_up_workers() -> None:
    """Start the server that workers are forked from, and let it load torch beside this process.

    Call before torch is loaded here, with the environment that torch shall see; without it the server starts cold.
    """
    forkserver.set_forkserver_preload(
        ["commbench.engines.torch_dist", "commbench.measure.worker", "commbench.launch.fork_server"]
    )
    forkserver.ensure_running()


def run_local_workers(count: int, entry: Callable[..., Any], *args: object) -> Any:
    """What `entry(*args)` returns on rank 0 of `count` workers on this machine, which meet over loopback.

    Raises WorkerDiedError naming a rank that died, WorkerExitError for one that exited with a code of ours,
    InterruptedRunError on Ctrl-C. No worker outlives the call.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=f"commbench-{uuid4().hex}",
        rdzv_backend="c10d",
        rdzv_endpoint=f"{LOOPBACK}:0",
        local_addr=LOOPBACK,
        max_restarts=0,
        monitor_interval=0.1,
        start_method="forkserver",
    )
    reaper = _Reaper()
    logging.disable(logging.ERROR)  # elastic logs every exit; what matters is said by us, once
    try:
        results: dict[int, Any] = elastic_launch(config, entry)(*args)
    except ChildFailedError as failed:
        raise _explain(failed.failures, count) from failed
    except SignalException as stopped:
        raise InterruptedRunError(f"interrupted by {stopped.sigval.name}: what was measured is kept.") from stopped
    finally:
        reaper.finish()
        logging.disable(logging.NOTSET)
    return results[0]


def _explain(failures: dict[int, Any], count: int) -> CommbenchError:
    """The error for the first worker that failed, as torch's launcher saw it."""
    rank, failure = min(failures.items(), key=lambda item: item[1].timestamp)
    code = failure.exitcode
    if code == InterruptedRunError.exit_code:
        return InterruptedRunError("interrupted: what was measured is kept.")
    if code in _OUR_EXIT_CODES and not os.path.exists(failure.error_file):
        return WorkerExitError(code)
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
        hint = " (out of memory? see dmesg)" if -code == signal.SIGKILL else ""
    else:
        how, hint = f"ended with exit code {code}", ""
    if os.path.exists(failure.error_file):  # an exception that nobody expected: a bug, with its traceback
        hint = f": {failure.message['message']}\n{failure.message['extraInfo']['py_callstack']}"
    return WorkerDiedError(f"rank {rank} of {count} (pid {failure.pid} on this machine) {how}{hint}.")


class _Reaper:
    """A thread that kills the workers that are left a few seconds after one of them died."""

    def __init__(self) -> None:
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="commbench-reaper", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Stop watching; what is still there is killed now."""
        self._finished.set()
        self._thread.join()
        for worker in multiprocessing.active_children():
            worker.kill()

    def _watch(self) -> None:
        # Seeing needs a look every second only: whoever hurries is killed by elastic.
        most = 0
        while not self._finished.wait(1.0):
            alive = len(multiprocessing.active_children())
            most = max(most, alive)
            if alive < most:
                self._reap()

    def _reap(self) -> None:
        give_up = time.monotonic() + _REAP_AFTER_SECONDS
        while not self._finished.wait(0.25):
            for worker in multiprocessing.active_children():
                if time.monotonic() > give_up or _is_stopped(worker.pid):
                    worker.kill()


def _is_stopped(pid: int | None) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False
