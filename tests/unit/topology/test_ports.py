"""ibstat, ibv_devinfo and show_gids."""

import pytest

from commbench.errors import CommbenchError
from tests.unit.topology.make import finding, found, read
from tests.unit.topology.samples import DEVINFO, IBSTAT, SHOW_GIDS


def states(topology):
    return [(nic.key, nic.state, nic.bytes_per_second) for nic in topology.nics]


def test_ibstat_has_a_nic_for_each_port():
    assert states(read(IBSTAT)) == [
        ("mlx5_0", "active, InfiniBand", 25e9),
        ("mlx5_1", "active, InfiniBand", 25e9),
        ("mlx5_2", "active, Ethernet", 12.5e9),
        ("rocep3s0:1", "down, Ethernet", 5e9),
        ("rocep3s0:2", "active, Ethernet", 12.5e9),
    ]


def test_ibstat_says_which_ports_are_down_or_of_another_fabric():
    topology = read(IBSTAT)
    assert finding(topology, "TOPO-PORT-DOWN").observed == "1 of 5 ports: down"
    assert finding(topology, "TOPO-PORT-DOWN").subject == "rocep3s0:1"
    mixed = finding(topology, "TOPO-NIC-MIXED")
    assert (mixed.subject, mixed.observed) == ("mlx5_2, rocep3s0:2", "Ethernet, 100 Gbit/s")
    assert mixed.expected == "InfiniBand, 200 Gbit/s, subnet manager at LID 10, as mlx5_0-1"


def test_another_subnet_is_another_fabric():
    topology = read(IBSTAT.replace("SM lid: 10", "SM lid: 43", 1))
    assert "mlx5_0" in found(topology)["TOPO-NIC-MIXED"]


def test_indentation_by_blanks_and_empty_fields():
    text = IBSTAT.replace("\t", "    ").replace("CA type: MT4123", "CA type:")
    assert states(read(text)) == states(read(IBSTAT))


def test_a_torn_port_says_what_is_missing():
    topology = read(IBSTAT[: IBSTAT.index("Rate: 200")])
    assert states(topology) == [("mlx5_0", "active", None)]
    assert finding(topology, "TOPO-PORT-UNSAID").observed == "the link layer is not said"


def test_devinfo_state_rate_and_gids():
    topology = read(DEVINFO)
    assert states(topology) == [("mlx5_0", "active, Ethernet", 12.5e9), ("mlx5_1", "down, Ethernet", None)]
    gid = finding(topology, "TOPO-GID")
    assert (gid.subject, gid.verdict, gid.observed) == (
        "mlx5_0", "ok", "GID index 3 is RoCE v2 with an address that is routed",
    )  # fmt: skip


def test_a_cut_out_of_a_gid_table_is_read():
    topology = read(
        "\tphys_state:\tLINK_UP (5)\n" + "".join(line for line in DEVINFO.splitlines(True) if "GID[" in line)
    )
    assert [nic.key for nic in topology.nics] == ["?"]
    assert finding(topology, "TOPO-GID").verdict == "ok"


@pytest.mark.parametrize(
    ("address", "version", "verdict"),
    [
        ("::ffff:192.0.2.7", "RoCE v2", "ok"),
        ("2001:db8::1", "RoCE v2", "ok"),
        ("fe80::1", "RoCE v2", "warn"),
        ("::ffff:192.0.2.7", "RoCE v1", "warn"),
        ("0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", "warn"),
        ("12345::", "RoCE v2", "warn"),
    ],
)
def test_a_gid_is_routed_or_not(address, version, verdict):
    assert finding(read(f"GID[  0]:\t{address}, {version}\n"), "TOPO-GID").verdict == verdict


def test_show_gids():
    topology = read(SHOW_GIDS)
    assert [nic.key for nic in topology.nics] == ["mlx5_0", "mlx5_1"]
    by_subject = {one.subject: one for one in topology.findings if one.rule == "TOPO-GID"}
    assert by_subject["mlx5_0"].observed == "GID index 3 is RoCE v2 with an address that is routed"
    assert by_subject["mlx5_1"].verdict == "warn"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CA 'mlx5_0'\n\tNumber of ports: 1\n", "tells of no port"),
        (IBSTAT + IBSTAT, "tells of a port twice"),
        ("CA 'a'\n" + "".join(f"Port {n}:\n" for n in range(513)), "has 513 ports"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text, reason):
    with pytest.raises(CommbenchError, match=reason):
        read(text)
