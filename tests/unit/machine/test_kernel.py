"""The kernel's log: which lines are kept, and that names and addresses are not."""

import os

import pytest

from commbench.machine import kernel
from tests.trees import dgx_facts

XID = "[ 1234.567890] NVRM: Xid (PCI:0000:13:00): 79, pid=1, GPU has fallen off the bus."


def messages(edits):
    return dgx_facts(edits).kernel.messages


SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:90:00.0): 12028"
NARROW = "[ 3.1] mlx5_core 0000:14:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s"
CARRIER = "systemd-networkd[900]: ibs0: lost carrier"
KILLED = "[ 9.0] Out of memory: Killed process 42 (python)"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (XID, XID),
        (f"Aug  1 10:00:00 dgx-01 kernel: {XID}", f"Aug  1 10:00:00 {XID}"),
        (f"2025-08-01T10:00:00.1+02:00 dgx-01 kernel: {SWITCH}", f"2025-08-01T10:00:00.1+02:00 {SWITCH}"),
        (NARROW, NARROW),
        (f"Aug  1 10:00:00 dgx-01 {CARRIER}", f"Aug  1 10:00:00 {CARRIER}"),
        (KILLED, KILLED),
        ("[ 9.0] eth0: link down, station 04:41:1a:16:17:bd", "[ 9.0] eth0: link down, station [address]"),
        ("[ 9.0] usb 1-1: new device", None),
    ],
)
def test_lines_that_matter(line, kept):
    assert messages({"var/log/dmesg": f"[ 0.0] Linux\n{line}\n"}) == (() if kept is None else (kept,))


def test_the_newest_lines_are_kept_and_each_is_cut():
    lines = [f"[ {number}.0] NVRM: Xid (PCI:0000:13:00): 43, {'x' * 500}" for number in range(1000)]
    kept = messages({"var/log/dmesg": "\n".join(lines)})
    assert len(kept) == 200
    assert kept[-1].startswith("[ 999.0]")
    assert max(map(len, kept)) == 240


def test_a_log_that_is_not_text():
    kept = messages({"var/log/dmesg": b"\xff\xfe\x1b[31mNVRM: Xid\x07\n" + bytes(5000)})
    assert kept == ("\ufffd\ufffd?[31mNVRM: Xid?",)


def test_other_logs_stand_in_and_none_is_unseen():
    assert messages({"var/log/dmesg": None, "var/log/syslog": XID}) == (XID,)
    facts = dgx_facts({"var/log/dmesg": None})
    assert facts.kernel.messages is None
    assert facts.why_unseen("kernel.messages") == "no log of the kernel in the captured tree"


def test_records_of_the_running_kernel(tmp_path, monkeypatch):
    records = [
        b"6,1,500000,-;usb 1-1: new\n",
        b"3,2,1234567890,-;NVRM: Xid (PCI:0000:13:00): 79\n SUBSYSTEM=pci\n",
        BrokenPipeError(),
        b"3,3,x,-;NVRM: Xid (PCI:0000:13:00): 48\n",
        BlockingIOError(),
    ]

    def read(descriptor, nbytes):
        record = records.pop(0)
        if isinstance(record, Exception):
            raise record
        return record

    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(os, "read", read)
    assert kernel._running(str(tmp_path / "kmsg")) == [
        b"[1234.567890] NVRM: Xid (PCI:0000:13:00): 79",
        b"[?] NVRM: Xid (PCI:0000:13:00): 48",
    ]


def test_a_buffer_that_may_not_be_read_says_so():
    assert kernel._running("/nowhere/kmsg").startswith("/nowhere/kmsg: No such file or directory")
