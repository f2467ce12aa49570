"""NCCL's and RCCL's debug logs (NCCL 2.3 to 2.32, and what is alike): text in, one record out. Opens no file.

`lines.py` puts messages together, `messages.py` is the table of what they say, `outside.py` of what others say beside
them, `faults.py` of what warnings mean; `reader.py` collects all of it.
"""

from commbench.results.nccl_log.reader import MAX_NBYTES as MAX_NBYTES
from commbench.results.nccl_log.reader import read_logs as read_logs
from commbench.results.nccl_log.records import NcclLog as NcclLog
