"""The image: who it runs as, what it may write, what its layers hold, and what a build does again."""

import json
import re
from typing import Final

import pytest

from tests.containers.conftest import COMMIT, FORMER, NEW, Built
from tests.containers.machine import Machine
from tests.people.docs.pages import BY_PATH, SHELL
from tests.support.served import get, post, until

# What a process may do, and what it may write; as JSON.
_PROBE: Final = """
import json, os, tempfile
def writes(folder):
    try:
        tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        return error.strerror
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
folders = ("/", "/etc", "/opt/shop-directory", "/run/shop-directory", "/var/lib/shop-directory", "/tmp")
print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), status["CapEff"], status["CapPrm"], status["NoNewPrivs"],
                  {folder: writes(folder) for folder in folders}]))
"""
_HARDENED: Final = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")
_DENIED: Final = "Permission denied"
_READ_ONLY: Final = "Read-only file system"
_NOTHING: Final = "0" * 16

pytestmark = pytest.mark.timeout(900)


def probed(machine: Machine, *options: str) -> list[object]:
    found: list[object] = json.loads(
        machine.docker("run", "--rm", "--entrypoint=python", *options, NEW, "-I", "-c", _PROBE)
    )
    return found


def test_it_runs_as_a_user_without_rights_who_can_write_nothing_but_its_own_folders(
    machine: Machine, built: Built
) -> None:
    own = dict.fromkeys(("/run/shop-directory", "/var/lib/shop-directory", "/tmp"))  # noqa: S108 - of a container
    program = dict.fromkeys(("/", "/etc", "/opt/shop-directory"), _DENIED)
    assert probed(machine) == [10001, 10001, [10001], _NOTHING, _NOTHING, "0", program | own]


def test_it_needs_no_writable_root_and_no_capability(machine: Machine, built: Built) -> None:
    *rights, writes = probed(machine, *_HARDENED)
    assert rights == [10001, 10001, [10001], _NOTHING, _NOTHING, "1"]
    assert isinstance(writes, dict)
    assert {folder for folder, refused in writes.items() if refused is None} == {"/tmp"}  # noqa: S108 - of a container
    assert set(writes.values()) == {None, _READ_ONLY, _DENIED} or set(writes.values()) == {None, _READ_ONLY}


def test_a_change_elsewhere_compiles_no_machine_code_again(machine: Machine, built: Built) -> None:
    """The builder numbers its steps; a step that it takes from its cache has the line `#N CACHED`."""

    def step(said: str, command: str) -> str:
        (number,) = re.findall(rf"^#(\d+) \[build .*{re.escape(command)}", said, re.MULTILINE)
        return "\n".join(line for line in said.splitlines() if line.startswith(f"#{number} "))

    compiling = "RUN /opt/shop-directory/bin/python -m service.search.typeahead"
    assert "CACHED" not in step(built.former, compiling)
    assert "CACHED" in step(built.new, compiling)
    assert "CACHED" not in step(built.new, "COPY service ./service")
    # The last step finds that code, and so does a container.
    last = re.findall(r"^#\d+ DONE ([\d.]+)s", step(built.new, "RUN cp service/search/typeahead"), re.MULTILINE)
    assert [float(seconds) < 20 for seconds in last] == [True]
    said = machine.docker("run", "--rm", *_HARDENED, "--entrypoint=python", NEW, "-I", "-c", _SECONDS)
    assert float(said) < 15


# Of processor time; compiling takes minutes.
_SECONDS: Final = """
import time
from service.search.typeahead.compiled import load_kernel
load_kernel()
print(time.process_time())
"""


def test_pips_configuration_built_it_and_is_in_no_layer(machine: Machine, built: Built) -> None:
    configuration = (machine.folder / "pip.conf").read_text("utf-8")
    (address,) = re.findall(r"http://\S+/", configuration)
    for tag in (FORMER, NEW):
        assert address not in machine.docker("history", "--no-trunc", tag)
    found = machine.docker(
        "run", "--rm", "--user=0", "--entrypoint=sh", NEW, "-c",
        f"ls /etc/pip.conf; grep -rlF {address} /etc /opt /root /src /var 2>/dev/null || true",
    )  # fmt: skip
    assert found == ""


def test_the_embedded_engine_needs_the_image_and_one_volume(machine: Machine, built: Built) -> None:
    """By the commands of docs/containers.md."""
    machine.docker("tag", NEW, "shop-directory:local")
    (block,) = (one for one in BY_PATH["docs/containers.md"].blocks if "docker volume create" in one.text)
    assert block.language == SHELL
    machine.run(["sh", "-euxc", block.text])
    (container,) = machine.docker("ps", "--quiet").split()
    base = "http://127.0.0.1:8080"
    try:
        until(lambda: _is_ready(base), bool, 60)
        assert get(base, "/version").json["commit"] == COMMIT
        reply = post(base, "/tool/find_shop", {"query": "lumen larch"})
        assert [shop["domain"] for shop in reply.json["results"]] == ["lumen-larch.internal"]
    finally:
        said = machine.docker("logs", container)
        machine.docker("stop", container)
        ended = machine.docker("inspect", "--format={{.State.ExitCode}}", container).strip()
        machine.docker("rm", container)
        machine.docker("volume", "rm", "shops")
    assert ended == "0", said


def _is_ready(base: str) -> bool:
    try:
        return get(base, "/ready").status == 200
    except OSError:
        return False
