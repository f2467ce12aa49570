"""Loaded in the server that workers are forked from, after everything else, and only there.

When the command ends, so does the server; taking torch apart first would be a second in which it still holds the
command's output open, and whoever reads that waits. Workers leave by `os._exit` and are not concerned.
"""

import atexit
import os

atexit.register(os._exit, 0)
