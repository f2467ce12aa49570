"""Environments in files: every form, with the line of each variable; never a secret."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import CommbenchError
from commbench.machine.env_file import parse_env

SCRIPT = """#!/bin/bash
#SBATCH --nodes=4 --export=ALL,NCCL_DEBUG=WARN,NCCL_SOCKET_IFNAME=eth0,eth1,API_TOKEN=hush
# export NCCL_P2P_DISABLE=1
export NCCL_IB_HCA="=mlx5_0,mlx5_1" NCCL_IB_TIMEOUT=22  # as the vendor says
declare -x GLOO_SOCKET_IFNAME='bond0'
export SECRET_TOKEN=hush
if true; then export NCCL_ALGO=Ring; fi
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
NCCL_NET_GDR_LEVEL=PHB srun python train.py --nodes=4
mpirun -x NCCL_MIN_CTAS=4 -x PATH -genv NCCL_MAX_CTAS 8 ./x
docker run -e NCCL_SHM_DISABLE=1 --env=NCCL_CROSS_NIC=0 --env "NCCL_NET=AWS Libfabric" image
"""
MANIFEST = """spec:
  containers:
    - env:
        - name: NCCL_DEBUG
          value: "INFO"
        - {name: NCCL_IB_TIMEOUT, value: "22"}
        - name: DB_PASSWORD
          value: hush
        - name: NCCL_NET
          valueFrom: {secretKeyRef: {key: hush}}
      data:
        NCCL_SOCKET_IFNAME: eth0
"""
SAMPLES = {
    "env": b"PATH=/bin:/usr/bin\nNCCL_NET=AWS Libfabric\nLS_COLORS=rs=0:di=01;34\nRANK=3\n",
    "conf": b"# of the site\nNCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME==eth0\n",
    "environ": b"RANK=1\0NCCL_DEBUG=INFO\0",
    "script": SCRIPT.encode(),
    "csh": b"#!/bin/csh\nsetenv NCCL_DEBUG WARN\n",
    "unit": b'[Service]\nExecStart=/bin/x\nEnvironment="NCCL_NVLS_ENABLE=0"\n',
    "dockerfile": b"FROM x\nENV NCCL_DEBUG=WARN RANK=0\nENV NCCL_NET Socket\n",
    "manifest": MANIFEST.encode(),
    "object": b'{\n "NCCL_DEBUG": "INFO",\n "NCCL_IB_TIMEOUT": 22, "TOKEN": "hush"}',
    "list": b'[{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "PASSWORD", "value": "hush"}]',
    "inspect": b'[{"Config": {"Env": ["NCCL_DEBUG=INFO", "PASSWORD=hush"]}}]',
}


def variables(name: str) -> dict[str, str]:
    return parse_env(SAMPLES[name], "job").variables


def test_each_form_gives_its_variables():
    assert variables("env") == {"NCCL_NET": "AWS Libfabric", "RANK": "3"}
    assert variables("conf") == {"NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "=eth0"}
    assert variables("environ") == {"RANK": "1", "NCCL_DEBUG": "INFO"}
    assert variables("csh") == {"NCCL_DEBUG": "WARN"}
    assert variables("unit") == {"NCCL_NVLS_ENABLE": "0"}
    assert variables("dockerfile") == {"NCCL_DEBUG": "WARN", "RANK": "0", "NCCL_NET": "Socket"}
    assert variables("manifest") == {"NCCL_DEBUG": "INFO", "NCCL_IB_TIMEOUT": "22", "NCCL_SOCKET_IFNAME": "eth0"}
    assert variables("object") == {"NCCL_DEBUG": "INFO", "NCCL_IB_TIMEOUT": "22"}
    assert variables("list") == variables("inspect") == {"NCCL_DEBUG": "INFO"}


def test_a_script_gives_what_it_exports_with_the_line():
    found = parse_env(SCRIPT.encode(), "job.sh")
    assert found.variables == {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "eth0,eth1",
        "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
        "NCCL_IB_TIMEOUT": "22",
        "GLOO_SOCKET_IFNAME": "bond0",
        "NCCL_ALGO": "Ring",
        "MASTER_ADDR": "$(scontrol",  # that a shell has yet to replace it is all that counts
        "NCCL_NET_GDR_LEVEL": "PHB",
        "NCCL_MIN_CTAS": "4",
        "NCCL_MAX_CTAS": "8",
        "NCCL_SHM_DISABLE": "1",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET": "AWS Libfabric",
    }
    assert found.sources["NCCL_DEBUG"] == "job.sh:2"
    assert found.sources["NCCL_NET"] == "job.sh:11"


def test_json_has_lines_too():
    assert parse_env(SAMPLES["object"], "a.json").sources == {"NCCL_DEBUG": "a.json:2", "NCCL_IB_TIMEOUT": "a.json:3"}


def test_what_sets_a_name_last_counts():
    found = parse_env(b"export NCCL_DEBUG=INFO\nexport NCCL_DEBUG=WARN\n", "job.sh")
    assert (found.variables, found.sources) == ({"NCCL_DEBUG": "WARN"}, {"NCCL_DEBUG": "job.sh:2"})


def test_a_file_that_is_too_long_is_refused():
    with pytest.raises(CommbenchError, match="1 MiB"):
        parse_env(b"x" * (2 << 20), "big")


@pytest.mark.parametrize("name", SAMPLES)
def test_no_secret_is_kept(name):
    found = parse_env(SAMPLES[name], name)
    assert found.variables
    assert "hush" not in repr(found)


@given(
    st.dictionaries(
        st.sampled_from(["NCCL_DEBUG", "RANK", "UCX_TLS"]), st.text("abc019=:,^._/", min_size=1), min_size=1
    )
)
def test_json_and_env_say_the_same(environment):
    dump = "".join(f"{name}={value}\n" for name, value in environment.items())
    assert parse_env(dump.encode(), "env").variables == environment
    assert parse_env(json.dumps(environment).encode(), "json").variables == environment
