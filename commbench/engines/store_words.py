"""What is said where the rendezvous cannot be opened, reached, or is gone: the same words whatever store it is."""


def gone(where: str, reason: str) -> str:
    return f"the rendezvous store at {where} is gone: {reason}."


def refused(where: str, reason: str) -> str:
    return f"the rendezvous store at {where} {reason}."


def port_in_use(where: str) -> str:
    return f"cannot open the rendezvous at {where}: the port is in use; set MASTER_PORT to a free one on all ranks"


def no_answer(where: str, timeout_seconds: float) -> str:
    return (
        f"got no answer from rank 0 at {where} within {timeout_seconds:g} s: rank 0 has not started there, has "
        "ended, or the address cannot be reached from here"
    )


def unreachable(where: str, reason: str) -> str:
    return f"cannot reach the rendezvous at {where}: {reason}"


def foreign(where: str) -> str:
    return f"found another service than commbench's at {where}: set MASTER_PORT to a free port on all ranks"
