"""A board in memory, for tests of those who talk over one."""

import threading
import time
from collections.abc import Sequence

from commbench.errors import RendezvousError


class MemoryBoard:
    """What a rendezvous store does, among threads. `gone`: it has died; `stuck`: it answers when that is cleared."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.gone = False
        self._counting = threading.Lock()
        self.answers = threading.Event()
        self.answers.set()

    def put(self, key: str, text: str) -> None:
        self._ask()
        self.texts[key] = text

    def get(self, keys: Sequence[str]) -> list[str]:
        self._ask()
        return [self.texts[key] for key in keys]

    def has(self, key: str) -> bool:
        self._ask()
        return key in self.texts

    def count(self, key: str, more: int) -> int:
        self._ask()
        with self._counting:
            number = int(self.texts.get(key, "0")) + more
            self.texts[key] = str(number)
        return number

    def wait(self, key: str, seconds: float) -> bool:
        give_up = time.monotonic() + seconds
        while key not in self.texts and time.monotonic() < give_up:
            time.sleep(0.005)
        return key in self.texts

    def delete(self, key: str) -> None:
        self._ask()
        self.texts.pop(key, None)

    def _ask(self) -> None:
        self.answers.wait()
        if self.gone:
            raise RendezvousError("the rendezvous store is gone.")
