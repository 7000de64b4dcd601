"""Runs these tests: `python -m tests.containers [--where-possible] ARGS` passes ARGS to pytest.

Installs what is missing, makes what the engine would have to pull, and runs pytest in namespaces without a network but
their own loopback. All processes, mounts and addresses end with the namespaces, however the run ends. Where no engine
can be started it says so and fails, or with --where-possible succeeds; then it ends at the first failure, and after
twelve minutes says that it did not finish, as a part of CI whose machine may be slow.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from tests.containers.images import base_command, wheels_command
from tests.containers.machine import CGROUP, FOLDER, NAMESPACES, NO_ENGINE
from tests.support.real.node_build import BuildError
from tests.support.real.sources import Missing, find_local_nodes

_POSSIBLE: Final = "--where-possible"
_NOT_RUN: Final = 3
_BOUND_S: Final = 12 * 60
# Not in memory, where CI's own folder may be: the engine's images take 3 GB.
_DISK: Final = Path("/var/tmp")  # noqa: S108 - mkdtemp makes a folder of its own there
# Debian's packages, by the program that each is needed for. Debian 13 has the last two apart from docker.io.
_PACKAGES: Final = {
    "/usr/bin/python3": "python3",
    "dockerd": "docker.io",
    "iptables": "iptables",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "caddy": "caddy",
    "redis-server": "redis-server",
    "mvn": "maven",
}
_APART: Final = {"/usr/bin/docker": "docker-cli", "/usr/libexec/docker/cli-plugins/docker-buildx": "docker-buildx"}


class LateError(BaseException):
    """The time of a part of CI is over; no handler of an error may catch it."""


class CannotRunError(Exception):
    """Here no engine can be started; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Run them; returns pytest's exit code, or 3 where no engine can be started."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _end_late)
    if _POSSIBLE in arguments:
        signal.alarm(_BOUND_S)
    given = ["--exitfirst" if argument == _POSSIBLE else argument for argument in arguments]
    try:
        _refuse_other_machines()
        _install()
        with _folder() as folder:
            _prepare(folder)
            code = _run(folder, given)
    except CannotRunError as reason:
        _say(f"containers: NOT RUN, because {reason}")
        return 0 if _POSSIBLE in arguments else _NOT_RUN
    except LateError:
        _say(f"containers: NOT FINISHED; nothing had failed after {_BOUND_S} s. make test-containers runs all of them")
        return 0
    except KeyboardInterrupt:
        _say("containers: interrupted; everything that was started has ended")
        return 128 + signal.SIGINT
    _say(f"containers: ran, and pytest ended with {code}")
    return code


def _say(line: str) -> None:
    print(line, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _end_late(_number: int, _frame: FrameType | None) -> NoReturn:
    raise LateError


def _refuse_other_machines() -> None:
    if os.geteuid() != 0:
        raise CannotRunError("a Docker engine needs root")
    if not Path("/etc/debian_version").is_file() or shutil.which("apt-get") is None:
        raise CannotRunError("this is not Debian, whose packages are the engine and the images")
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise CannotRunError(f"this machine makes no namespaces ({tried.stderr.strip()})")


def _install() -> None:
    missing = [package for program, package in _PACKAGES.items() if _which(program) is None]
    if missing:
        _apt("update")
        _install_packages(missing)
    for file, package in _APART.items():
        if not Path(file).exists() and _is_packaged(package):
            _install_packages([package])


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _is_packaged(package: str) -> bool:
    found = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False).stdout
    return "Candidate: " in found and "Candidate: (none)" not in found


def _install_packages(packages: Sequence[str]) -> None:
    _say(f"Installing {' '.join(packages)} ...")
    _apt("install", "--yes", "--no-install-recommends", *packages)


def _apt(*words: str) -> None:
    # Debian starts the servers that it installs, unless a run level says that the machine does not serve yet.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(
        ["apt-get", "--quiet", "--quiet", *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CannotRunError(f"apt-get {words[0]} fails: {done.stderr.strip()[-500:]}")


@contextmanager
def _folder() -> Iterator[Path]:
    """Everything of a run is in one folder and in control groups of its name, both removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="shop-directory-containers-", dir=_DISK))
    folder.chmod(0o711)  # for users of containers who read what is bound from it
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for found in [*CGROUP.glob(folder.name), *CGROUP.glob(f"*/{folder.name}")]:
            for inner in sorted(found.rglob("*/"), reverse=True):
                with suppress(OSError):
                    inner.rmdir()
            with suppress(OSError):
                found.rmdir()


def _prepare(folder: Path) -> None:
    _say("Making a Debian for images, fetching the locked wheels, preparing OpenSearch ...")
    nodes = find_local_nodes()
    if isinstance(nodes, Missing):
        raise CannotRunError(nodes.reason)
    environment = {**os.environ, "TMPDIR": str(folder)}
    with ExitStack() as stack:
        made = [
            stack.enter_context(_started(command, environment))
            for command in (base_command(folder), wheels_command(folder))
        ]
        try:
            nodes.build()
        except BuildError as failure:
            raise CannotRunError(str(failure)) from failure
        for process in made:
            _, errors = process.communicate()
            if process.returncode != 0:
                raise CannotRunError(f"{process.args!r} fails: {errors.strip()[-500:]}")


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _run(folder: Path, arguments: Sequence[str]) -> int:
    environment = {**os.environ, FOLDER: str(folder), "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), "--durations=15", *arguments]
    # Its own session, so that an interrupt reaches this process alone, whose end the kernel makes that of all others.
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *NAMESPACES, *command], env=environment, process_group=0
    )
    try:
        code = child.wait()
    finally:
        child.kill()
        child.wait()
    if code == NO_ENGINE:
        raise CannotRunError("the engine starts no container, for the reason above")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
