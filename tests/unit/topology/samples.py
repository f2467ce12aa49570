"""A small text of every format, which the fuzzer damages."""

from commbench.machine.facts import (
    CpuFacts,
    Facts,
    GpuFacts,
    HostFacts,
    NumaNode,
    NvLinkFacts,
    PciDevice,
    RdmaDevice,
    RdmaPort,
)
from commbench.machine.snapshot import format_snapshot
from tests.unit.topology.make import MATRIX

NCCL_XML = """\
<!-- two sockets, a switch in each -->
<system version="1">
  <cpu numaid="0" affinity="0000ffff,00000000,0000ffff" arch="x86_64">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:21:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:c4:00.0" count="2" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" gdr="1"/>
          <net name="mlx5_1" dev="1" speed="200000" port="2" gdr="0"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000,00000000,ffff0000" arch="x86_64">
    <pci busid="0000:20:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:21:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:11:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:c5:00.0" count="2" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:23:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:24:00.0" class="0x020000" link_speed="" link_width="0"/>
      </pci>
    </pci>
    <pci busid="0000:30:00.0" class="0x120000" link_speed="8 GT/s" link_width="16"/>
  </cpu>
</system>
"""

NCCL_GRAPH = """\
<graphs version="1">
  <graph id="0" pattern="4" nchannels="1" typeintra="NVL" typeinter="PIX">
    <channel><gpu dev="0"/><gpu dev="1"/></channel>
  </graph>
</graphs>
"""

LSTOPO = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003">
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000001">
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[10-1f]">
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:10:01.0" pci_link_speed="15.7">
          <object type="Bridge" bridge_type="1-1" pci_busid="0000:11:01.0">
            <object type="PCIDev" pci_busid="0000:12:00.0" pci_type="0302 [10de:20b0] [10de:0001] a1 00">
              <object type="OSDev" name="nvml0" osdev_type="1"/>
            </object>
          </object>
          <object type="Bridge" bridge_type="1-1" pci_busid="0000:11:02.0">
            <object type="PCIDev" pci_busid="0000:13:00.0" pci_type="0207 [15b3:101b] [15b3:0001] 00 00">
              <object type="OSDev" name="ib0" osdev_type="2"/>
              <object type="OSDev" name="mlx5_0" osdev_type="3"/>
            </object>
          </object>
          <object type="Bridge" bridge_type="1-1" pci_busid="0000:11:03.0">
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:14:00.0">
              <object type="PCIDev" pci_busid="0000:15:00.0" pci_type="0302 [10de:20b0] [10de:0001] a1 00"/>
            </object>
            <object type="Bridge" bridge_type="1-1" pci_busid="0000:14:01.0"/>
          </object>
        </object>
        <object type="Bridge" bridge_type="1-1" pci_busid="0000:10:02.0">
          <object type="PCIDev" pci_busid="0000:16:00.0" pci_type="0302 [10de:20b0] [10de:0001] a1 00"/>
        </object>
      </object>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[40-4f]">
        <object type="PCIDev" pci_busid="0000:40:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41 00">
          <object type="OSDev" name="card0" osdev_type="1"/>
        </object>
        <object type="PCIDev" pci_busid="0000:41:00.0" pci_type="0302 [10de:20b0] [10de:0001] a1 00"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[80-8f]">
        <object type="PCIDev" pci_busid="0000:81:00.0" pci_type="0200 [8086:1572] [8086:0001] 01 00">
          <object type="OSDev" name="eth0" osdev_type="2"/>
        </object>
      </object>
    </object>
  </object>
</topology>
"""

ROCM = """\
======================= ROCm System Management Interface =======================
============================ Hops between two GPUs =============================
       GPU0         GPU1         GPU2
GPU0   0            1            3
GPU1   1            0            2
GPU2   3            2            0

========================== Link Type between two GPUs ==========================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            PCIE
GPU2   PCIE         PCIE         0

================================== Numa Nodes ==================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[0]\t\t: (Topology) Numa Affinity: 0
GPU[1]\t\t: (Topology) Numa Node: 1
GPU[1]\t\t: (Topology) Numa Affinity: 1
GPU[2]\t\t: (Topology) Numa Node: 1
GPU[2]\t\t: (Topology) Numa Affinity: 1
============================= End of ROCm SMI Log ==============================
"""

P2P = """\
$ nvidia-smi topo -p2p r
 \tGPU0\tGPU1\tGPU2
 GPU0\tX\tOK\tCNS
 GPU1\tOK\tX\tCNS
 GPU2\tCNS\tCNS\tX
"""


def _ibstat_port(number: int, state: str, rate: int, subnet_manager: int, layer: str) -> str:
    return (
        f"\tPort {number}:\n\t\tState: {state}\n\t\tPhysical state: LinkUp\n\t\tRate: {rate}\n\t\tBase lid: 1\n"
        f"\t\tSM lid: {subnet_manager}\n\t\tLink layer: {layer}\n"
    )


IBSTAT = (
    f"CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n{_ibstat_port(1, 'Active', 200, 10, 'InfiniBand')}"
    f"CA 'mlx5_1'\n\tCA type: MT4123\n\tNumber of ports: 1\n{_ibstat_port(1, 'Active', 200, 10, 'InfiniBand')}"
    f"CA 'mlx5_2'\n\tCA type: MT4123\n\tNumber of ports: 1\n{_ibstat_port(1, 'Active', 100, 0, 'Ethernet')}"
    f"CA 'rocep3s0'\n\tCA type: MT4103\n\tNumber of ports: 2\n{_ibstat_port(1, 'Down', 40, 0, 'Ethernet')}"
    f"{_ibstat_port(2, 'Active', 100, 0, 'Ethernet')}"
)

DEVINFO = """\
hca_id: mlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t0
\t\t\tlink_layer:\t\tEthernet
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t25.0 Gbps (32)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0000:00ff:fe00:0001, RoCE v1
\t\t\tGID[  1]:\t\tfe80::ff:fe00:1, RoCE v2
\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:c000:0207, RoCE v1
\t\t\tGID[  3]:\t\t::ffff:192.0.2.7, RoCE v2

hca_id: mlx5_1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_DOWN (1)
\t\t\tlink_layer:\t\tEthernet
"""

SHOW_GIDS = """\
DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
---     ----    -----   ---                                     ------------    ---     ---
mlx5_0  1       0       fe80:0000:0000:0000:0000:00ff:fe00:0001                 v1      eth0
mlx5_0  1       1       fe80:0000:0000:0000:0000:00ff:fe00:0001                 v2      eth0
mlx5_0  1       2       0000:0000:0000:0000:0000:ffff:c000:0207 192.0.2.7       v1      eth0
mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:c000:0207 192.0.2.7       v2      eth0
mlx5_1  1       0       fe80:0000:0000:0000:0000:00ff:fe00:0002                 v1      eth1
n_gids_found=5
"""

LSTOPO_TEXT = """\
Machine (P#0 total=16GiB Backend=Linux)
  Package L#0 (P#0 CPUModel="A processor")
    NUMANode L#0 (P#0 local=8GiB total=8GiB)
    L3Cache L#0 (size=10MiB)
      Core L#0 (P#0)
        PU L#0 (P#0)
    HostBridge L#0 (buses=0000:[10-1f])
      PCIBridge L#1 (busid=0000:10:01.0 id=8086:2030 class=0604(PCIBridge) link=15.75GB/s buses=0000:[11-14])
        PCIBridge L#2 (busid=0000:11:00.0 id=10b5:8764 class=0604(PCIBridge) buses=0000:[12-14])
          PCIBridge L#3 (busid=0000:12:00.0 id=10b5:8764 class=0604(PCIBridge) buses=0000:[13-13])
            PCI L#0 (busid=0000:13:00.0 id=10de:20b0 class=0302(3D) link=15.75GB/s)
              GPU L#0 "nvml0"
          PCIBridge L#4 (busid=0000:12:01.0 id=10b5:8764 class=0604(PCIBridge) buses=0000:[14-14])
            PCI L#1 (busid=0000:14:00.0 id=15b3:101b class=0207(InfiniBand) link=15.75GB/s)
              Net L#1 "ib0"
              OpenFabrics L#2 "mlx5_0"
    HostBridge L#5 (buses=0000:[00-00])
      PCI L#2 (busid=0000:00:02.0 id=1a03:2000 class=0300(VGA))
  Package L#1 (P#1 CPUModel="A processor")
    NUMANode L#1 (P#1 local=8GiB total=8GiB)
    HostBridge L#6 (buses=0000:[80-8f])
      PCI L#3 (busid=0000:81:00.0 id=10de:1db5 class=0300(VGA))
depth 0: 1 Machine (type #0)
"""

LSPCI_TREE = """\
-+-[0000:86]-+-00.0  Mellanox Technologies MT27800 Family [ConnectX-5]
 |           \\-00.1  Mellanox Technologies MT27800 Family [ConnectX-5]
 +-[0000:3a]-+-00.0-[3b-41]----00.0-[3c-41]--+-04.0-[3d]--
 |           |                               +-08.0-[3e]--+-00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 |           |                               |            \\-00.1  NVIDIA Corporation GA100 High Definition Audio
 |           |                               +-10.0-[3f]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 |           |                               \\-14.0-[40]----00.0-[41]----01.0-[42]----00.0  Intel Ethernet 810
 |           +-02.0-[50]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 |           \\-05.0  Intel Corporation Device 2034
 \\-[0000:00]-+-00.0  Intel Corporation Sky Lake-E DMI3 Registers
             \\-1c.5-[02-03]----00.0-[03]----00.0  ASPEED Technology, Inc. ASPEED Graphics Family
"""

IFCONFIG = """\
docker0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 172.17.0.1  netmask 255.255.0.0  broadcast 172.17.255.255
        ether 02:42:00:00:00:01  txqueuelen 0  (Ethernet)

eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000
        inet 192.0.2.23  netmask 255.255.255.0  broadcast 192.0.2.255
        inet6 2001:db8::17  prefixlen 64  scopeid 0x0<global>
        RX packets 304675330  bytes 388788486256 (388.7 GB)

eth1: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500
        ether 04:41:00:00:00:02  txqueuelen 1000  (Ethernet)

lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536
        inet 127.0.0.1  netmask 255.0.0.0
"""

IFCONFIG_OLD = """\
ib0       Link encap:InfiniBand  HWaddr 80:00:00:02
          inet addr:192.0.2.7  Bcast:192.0.2.255  Mask:255.255.255.0
          UP BROADCAST RUNNING MULTICAST  MTU:2044  Metric:1

lo        Link encap:Local Loopback
          inet addr:127.0.0.1  Mask:255.0.0.0
          UP LOOPBACK RUNNING  MTU:65536  Metric:1
"""

SMI_LIST = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
  MIG 2g.20gb     Device  0: (UUID: MIG-00000000-0000-0000-0000-000000000002)
  MIG 2g.20gb     Device  1: (UUID: MIG-00000000-0000-0000-0000-000000000003)
  MIG 1g.10gb     Device  2: (UUID: MIG-00000000-0000-0000-0000-000000000004)
"""

_LANES = tuple(NvLinkFacts(number, True, 4, f"0000:{0xC4 + number:02x}:00.0", "switch") for number in range(2))
SNAPSHOT = format_snapshot(
    Facts(
        source="/",
        host=HostFacts(name="n1"),
        cpu=CpuFacts(numa_nodes=(NumaNode(0, "0-7"), NumaNode(1, "8-15"))),
        pci=(
            PciDevice("0000:10:01.0", "bridge", numa_node=0, root="pci0000:10"),
            PciDevice("0000:11:00.0", "bridge", "0000:10:01.0", numa_node=0, speed_max_gts=16.0, width=16,
                      root="pci0000:10"),
            PciDevice("0000:12:00.0", "bridge", "0000:11:00.0", numa_node=0, root="pci0000:10"),
            PciDevice("0000:12:01.0", "bridge", "0000:11:00.0", numa_node=0, root="pci0000:10"),
            PciDevice("0000:13:00.0", "gpu", "0000:12:00.0", "10de", numa_node=0, cpus="0-7", speed_gts=2.5,
                      speed_max_gts=16.0, width=16, root="pci0000:10"),
            PciDevice("0000:14:00.0", "nic", "0000:12:01.0", "15b3", numa_node=0, cpus="0-7", speed_max_gts=16.0,
                      width=8, root="pci0000:10"),
            PciDevice("0000:81:00.0", "gpu", "", "10de", numa_node=1, speed_max_gts=16.0, width=16, root="pci0000:81"),
        ),
        gpus=(
            GpuFacts(0, "0000:13:00.0", "A GPU", nvlinks=_LANES),
            GpuFacts(1, "0000:81:00.0", "A GPU", nvlinks=_LANES),
        ),
        rdma=(
            RdmaDevice("mlx5_0", "0000:14:00.0", ports=(
                RdmaPort("mlx5_0", 1, "active", bytes_per_second=25e9, link_layer="InfiniBand"),
                RdmaPort("mlx5_0", 2, "down", link_layer="InfiniBand"),
            )),
        ),
    )
)  # fmt: skip

SAMPLES = {
    "snapshot": SNAPSHOT,
    "nccl-topology": NCCL_XML,
    "nccl-graph": NCCL_GRAPH,
    "lstopo": LSTOPO,
    "lstopo-text": LSTOPO_TEXT,
    "lspci-tree": LSPCI_TREE,
    "rocm-smi": ROCM,
    "ibstat": IBSTAT,
    "ibv_devinfo": DEVINFO,
    "show_gids": SHOW_GIDS,
    "ifconfig": IFCONFIG,
    "nvidia-smi-p2p": P2P,
    "nvidia-smi-topo": MATRIX,
    "nvidia-smi-list": SMI_LIST,
}
