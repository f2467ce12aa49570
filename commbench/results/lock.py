"""Who is writing a run right now: a lock on its directory, which ends with the process that holds it."""

import fcntl
import os
from pathlib import Path

from commbench.errors import CommbenchError, UsageError


class RunLock:
    """Held while a process writes the run in `directory`. It lies on the directory itself and leaves no file."""

    def __init__(self, directory: Path) -> None:
        """Take the lock. Raises UsageError if another process has it, CommbenchError if there is no directory.

        Some network file systems lock no directory: there nobody can know, and the lock is taken as granted.
        """
        try:
            self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise CommbenchError(f"no run in {directory}: {error.strerror}; give the directory of a run.") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise UsageError(
                f"another process is writing {directory} right now: wait until it has ended, or stop it."
            ) from error
        except OSError:  # this file system locks no directory
            return

    def release(self) -> None:
        """Let others write. May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
