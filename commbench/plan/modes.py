"""The words for how calls are timed, and for which groups run at the same time."""

from typing import Literal

Mode = Literal["throughput", "latency"]
Concurrency = Literal["alone", "together"]
