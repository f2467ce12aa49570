"""The rendezvous store of torch, as the place where ranks meet and as the board on which they leave short texts."""

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from commbench.engines import store_words
from commbench.errors import RendezvousError

# Not exported by name where types are checked, but documented.
_TCPStore: Any = dist.TCPStore  # type: ignore[attr-defined]
_PrefixStore: Any = dist.PrefixStore  # type: ignore[attr-defined]

_ANSWER = timedelta(seconds=10)
_FAILURES = (dist.DistError, RuntimeError, ValueError)


class TorchBoard:
    """Texts by key in the store of a world, over a connection of their own: signs of life go out while the library
    waits on another, as our own waits do. No third one, for torch asks the DNS for each, on the host one by one.

    A store that does not answer blocks its caller for as long as that lasts.
    """

    def __init__(self, store: Any, own: Any, waiting: Any, where: str) -> None:
        self.store = store
        self._own, self._waiting = own, waiting
        self._where = where
        self._lock = threading.Lock()

    def put(self, key: str, text: str) -> None:
        with self._asking():
            self._own.set(key, text)

    def get(self, keys: Sequence[str]) -> list[str]:
        with self._asking():
            return [value.decode() for value in self._own.multi_get(list(keys))]

    def has(self, key: str) -> bool:
        with self._asking():
            return bool(self._own.check([key]))

    def count(self, key: str, more: int) -> int:
        with self._asking():
            return int(self._own.add(key, more))

    def wait(self, key: str, seconds: float) -> bool:
        with self._explaining():
            try:
                self._waiting.wait([key], timedelta(seconds=seconds))
            except dist.DistStoreError:  # its time is over
                return False
            return True

    def delete(self, key: str) -> None:
        with self._asking():
            self._own.delete_key(key)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._explaining(), self._lock:
            yield

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise RendezvousError(store_words.gone(self._where, first_line(error)), ranks=(0,)) from error


def open_board(*, rank: int, size: int, timeout_seconds: float) -> TorchBoard:
    """Connect to the store at MASTER_ADDR:MASTER_PORT; rank 0 is its host, unless torchrun's agent is.

    Raises RendezvousError if nobody answers there within `timeout_seconds`, or the port is in use.
    """
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    where = f"{host}:{port}"
    timeout = timedelta(seconds=timeout_seconds)
    by_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    prefix = f"commbench/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    try:
        is_host = rank == 0 and not by_agent
        store = _TCPStore(host, port, size, is_host, timeout, wait_for_workers=False)
        own = _TCPStore(host, port, size, False, _ANSWER, wait_for_workers=False)
    except _FAILURES as error:
        raise RendezvousError(
            f"rank {rank} of {size} {_explain(error, rank, where, timeout_seconds)}.", ranks=(0,) if rank else ()
        ) from error
    own, waiting = (_PrefixStore(f"{prefix}/board", one) for one in (own, store))
    return TorchBoard(_PrefixStore(f"{prefix}/group", store), own, waiting, where)


def first_line(error: Exception) -> str:
    """What an error says first: without torch's stack, gloo's place in its source, and its advice.

    gloo: "[file:line] Reason. This is typically caused by …"
    """
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"\[[^\]]*:\d+\] (?=\D)", "", first).partition(". This is typically")[0].rstrip(".")


def _explain(error: Exception, rank: int, where: str, timeout_seconds: float) -> str:
    text = str(error)
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return store_words.port_in_use(where)
    if rank and "timed out" in text:
        return store_words.no_answer(where, timeout_seconds)
    return store_words.unreachable(where, first_line(error))
