"""Simulates a ring all_reduce and one message on a platform: argv is the XML, SimGrid's options, the number
of ranks, and sizes in bytes.

Prints the simulated seconds of each size, first of the all_reduce (2(N-1) rounds of S/N to the right), then of one
message.
"""

import json
import sys

from simgrid import Actor, Engine, Mailbox

platform, options, ranks, *sizes = sys.argv[1], sys.argv[2].split(), *map(int, sys.argv[3:])
engine = Engine(["test", *options, "--log=root.thres:error"])
engine.load_platform(platform)
marks = []


def worker(rank):
    """One rank; rank 0 notes the time after each all_reduce, and after each single message from 1 to 0."""
    for number, size in enumerate(sizes):
        for step in range(2 * (ranks - 1)):
            sent = Mailbox.by_name(f"{number} {step} {(rank + 1) % ranks}").put_async("x", round(size / ranks))
            Mailbox.by_name(f"{number} {step} {rank}").get()
            sent.wait()
        if rank == 0:
            marks.append(Engine.clock)
    for number, size in enumerate(sizes):
        if rank == 1:
            Mailbox.by_name(f"single {number}").put("x", size)
        elif rank == 0:
            Mailbox.by_name(f"single {number}").get()
            marks.append(Engine.clock)


for rank in range(ranks):
    Actor.create(f"rank {rank}", engine.host_by_name(f"rank-{rank}"), worker, rank)
engine.run()
print(json.dumps([after - before for before, after in zip([0.0, *marks], marks, strict=False)]))
