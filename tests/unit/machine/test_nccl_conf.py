"""NCCL's files of settings: which are read, in which order, and what of them is kept."""

from commbench.machine.facts import ConfFile
from commbench.machine.nccl_conf import parse_line, read_conf_files, read_named_files
from commbench.machine.software import checked_environment, is_kept
from commbench.machine.tree import Tree


def write(root, path, text):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def named_files(root, environment):
    tree = Tree(root)
    return read_named_files(tree, environment, read_conf_files(tree, environment))


def test_the_users_file_comes_before_the_systems(tmp_path):
    write(tmp_path, "/home/u/.nccl.conf", "NCCL_DEBUG=INFO\n")
    write(tmp_path, "/etc/nccl.conf", "# of the site\nNCCL_DEBUG=WARN\r\nNCCL_SOCKET_IFNAME==eth0\n\nno setting\n")
    assert read_conf_files(Tree(tmp_path), {"HOME": "/home/u"}) == (
        ConfFile("/home/u/.nccl.conf", ("NCCL_DEBUG=INFO",)),
        ConfFile("/etc/nccl.conf", ("NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME==eth0")),
    )


def test_a_file_that_is_named_takes_the_users_place_even_when_it_is_missing(tmp_path):
    write(tmp_path, "/home/u/.nccl.conf", "NCCL_DEBUG=INFO\n")
    write(tmp_path, "/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    environment = {"HOME": "/home/u", "NCCL_CONF_FILE": "/opt/my.conf"}
    assert [file.path for file in read_conf_files(Tree(tmp_path), environment)] == ["/etc/nccl.conf"]
    assert named_files(tmp_path, environment) == {"/opt/my.conf": False}


def test_no_file_is_no_file(tmp_path):
    assert read_conf_files(Tree(tmp_path), {}) == ()
    assert named_files(tmp_path, {}) == {}


def test_a_file_that_a_file_names_is_looked_for(tmp_path):
    write(tmp_path, "/etc/nccl.conf", "NCCL_TOPO_FILE=/opt/topo.xml\n")
    write(tmp_path, "/opt/topo.xml", "<system/>")
    assert named_files(tmp_path, {}) == {"/opt/topo.xml": True}


def test_a_name_with_blanks_is_kept_as_nccl_reads_it_and_secrets_are_not(tmp_path):
    lines = "NCCL_DEBUG = INFO\nexport NCCL_DEBUG=INFO\nAWS_SECRET_ACCESS_KEY=abc\nNCCL_API_KEY=abc\nPATH=/bin\n"
    write(tmp_path, "/etc/nccl.conf", lines)
    (file,) = read_conf_files(Tree(tmp_path), {})
    assert file.lines == ("NCCL_DEBUG = INFO", "export NCCL_DEBUG=INFO")


def test_a_line_is_taken_apart_at_its_first_equals_sign():
    assert parse_line("NCCL_SOCKET_IFNAME==eth0") == ("NCCL_SOCKET_IFNAME", "=eth0")
    assert parse_line("NCCL_DEBUG = INFO") == ("NCCL_DEBUG ", " INFO")
    assert parse_line("# NCCL_DEBUG=INFO") is None
    assert parse_line("NCCL_DEBUG") is None


def test_a_path_that_cannot_be_one_is_not_readable(tmp_path):
    assert named_files(tmp_path, {"NCCL_TOPO_FILE": "/a\0b"}) == {"/a\0b": False}


def test_only_variables_of_the_families_are_seen():
    environment = {
        "NCCL_DEBUG": "INFO",
        "PATH": "/bin",
        "HOME": "/root",
        "WANDB_API_KEY": "x",
        "RANK": "1",
        "NCLL_DEBUG": "",
    }
    assert list(checked_environment(environment)) == ["NCCL_DEBUG", "NCLL_DEBUG", "RANK"]
    assert not is_kept("UCX_TOKEN_FOR_LOGIN")
