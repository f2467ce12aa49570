"""Racks from a file, from Slurm, and from names."""

import pytest

from commbench.analysis.racks import collect_hosts, guess_racks, read_racks, read_slurm_topology
from commbench.errors import UsageError

SCONTROL = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[01-03]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[04-05],gpu9
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-05],gpu9 Switches=leaf[1-2]
"""
CONF = """\
# topology.conf
switchname=leaf1 nodes=n[01-03]   # the first
SwitchName=leaf2 Nodes=n[04-05],gpu9
SwitchName=odd Nodes=n[[4
SwitchName=spine Switches=leaf[1-2]
"""
LEAVES = {"leaf1": ("n01", "n02", "n03"), "leaf2": ("n04", "n05", "gpu9")}


def test_a_file():
    text = "# ours\nr1: n[1-2],n7\n\nr2: n[3-4] # new\n"
    assert read_racks(text, "racks") == {"r1": ("n1", "n2", "n7"), "r2": ("n3", "n4")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r1 n1", "racks line 1: cannot read 'r1 n1': write NAME: HOSTLIST"),
        ("r1:", "racks line 1: cannot read"),
        (": n1", "racks line 1: cannot read"),
        ("r1: n1\nr1: n2", "racks line 2: rack 'r1' is there twice"),
        ("r1: n[1-2]\nr2: n2", "racks line 2: n2 is in r1 and in r2"),
        ("r1: n[1-", "racks line 1: cannot read the hosts"),
        ("r1: n[1-999999999]", "range too large"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text, message):
    with pytest.raises(UsageError) as caught:
        read_racks(text, "racks")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", [SCONTROL, CONF])
def test_slurms_leaf_switches(text):
    assert read_slurm_topology(text) == LEAVES


def test_text_that_is_no_topology():
    assert read_slurm_topology("No topology information available\n") == {}


def test_names_with_a_rack_and_a_place():
    hosts = ["r1-n01.site", "r1-n02.site", "r2-n01.site", "r2-n02.site"]
    assert guess_racks(hosts) == {"r1-n": tuple(hosts[:2]), "r2-n": tuple(hosts[2:])}


@pytest.mark.parametrize(
    "hosts", [["n1", "n2", "n3"], ["r1n1", "r1n2"], ["r1n1", "r1n2", "r2n1"], ["r1n1", "r1n2", "login"], []]
)
def test_names_that_tell_no_racks(hosts):
    assert guess_racks(hosts) == {}


def test_hosts_are_collected_for_slurm():
    assert collect_hosts(["n2", "n7"]) == "n[2,7]"
    assert collect_hosts([]) == ""
