"""Where in the two shared buffers a call's data lie: the same for every engine."""

from typing import Any

from commbench.plan.collectives import Blocks, Placement
from commbench.plan.groups import Group
from commbench.plan.plan import Case


def lengths(case: Case, group: Group) -> tuple[int, int]:
    """Elements of the send and of the receive buffer. In place there is one: the one with a block for every rank."""
    count = case.count(group) if case.spec.send is not Blocks.NONE else 0
    send, receive = (blocks.count(group.size) * count for blocks in (case.spec.send, case.spec.receive))
    if not case.in_place:
        return send, receive
    return (0, receive) if case.spec.receive is Blocks.PER_RANK else (send, 0)


def buffer_nbytes(case: Case) -> tuple[int, int]:
    """Bytes of the send and of the receive buffer that `case` takes on one rank."""
    found = [lengths(case, group) for group in case.groups]
    itemsize = case.element.itemsize
    return max(send for send, _ in found) * itemsize, max(receive for _, receive in found) * itemsize


def views(case: Case, group: Group, me: int, send: Any, receive: Any) -> tuple[Any, Any]:
    """The send and receive parts of one call, of buffers that are cut to `lengths`; in place they overlap as the
    collective's row says. None where the rank has none.
    """
    spec, count = case.spec, case.count(group)
    if case.in_place:
        own = slice(me * count, (me + 1) * count)
        if spec.placement is Placement.SAME_BUFFER:
            receive = send
        elif spec.send is Blocks.ONE:
            send = receive[own]
        else:
            receive = send[own]
    return (
        send if spec.sends(me) or case.in_place else None,
        receive if spec.receives(me) or case.in_place else None,
    )
