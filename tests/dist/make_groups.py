"""One rank of three: ranks 0 and 1 connect only after rank 2 has gone through 2,016 groups that it is not in."""

import os
import sys
import time

from commbench.engines.torch_dist import open_engine
from commbench.engines.torch_store import open_board
from commbench.plan.groups import Group

PAIRS_OF_64 = 64 * 63 // 2
rank = int(os.environ["RANK"])
board = open_board(rank=rank, size=3, timeout_seconds=60)
engine = open_engine(rank=rank, size=3, local_rank=rank, backend="gloo", board=board)
began = time.perf_counter()
if rank == 2:
    for _ in range(PAIRS_OF_64):
        engine._groups.clear()  # each is a new one, as 2,016 pairs would be
        engine.create_group(Group("0-1", (0, 1)))
    board.put("gone through", "")
else:
    if not board.wait("gone through", 30.0):
        sys.exit("rank 2 waits for groups that it is not in")
    engine.create_group(Group("0-1", (0, 1)))
    engine.barrier(Group("0-1", (0, 1)))
engine.barrier()
engine.close()
