"""A Docker engine that lives and ends with this run, and the commands given to it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The folder of a run, of which only `python -m tests.containers` sets the variable.
FOLDER: Final = "SHOP_DIRECTORY_TEST_CONTAINERS"
# pytest's exit code where no container can be started.
NO_ENGINE: Final = 77
CGROUP: Final = Path("/sys/fs/cgroup")
# When the first process of these ends, the kernel kills all others, and their mounts and addresses go.
OWN_PROCESSES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
NAMESPACES: Final = (*OWN_PROCESSES, "--net")
BOUND_S: Final = 600.0
_START_BOUND_S: Final = 60.0
# The images take three, and what runs in containers as much.
_ROOM_KB: Final = 12 * 1024**2
# Debian's own client: another one on the PATH may lack what builds need.
_DOCKER: Final = "/usr/bin/docker"


@dataclass(frozen=True, slots=True)
class Machine:
    """The engine's files are in `folder`; what commands print is returned, or is in the message of a failure."""

    folder: Path

    @property
    def data(self) -> Path:
        """Where the engine has its images, which are in memory if there is room: removing them may take minutes."""
        return self.folder / "data"

    @property
    def environment(self) -> dict[str, str]:
        """That of commands: nothing of this user's configuration of Docker, pip or the composition."""
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.folder),
            "DOCKER_CONFIG": str(self.folder / "client"),
            "DOCKER_HOST": self.address,
            "DOCKER_BUILDKIT": "1",
        }

    @property
    def address(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def docker(self, *words: str) -> str:
        return self.run([_DOCKER, *words])[0]

    def build(self, *words: str) -> str:
        """Build an image; returns what the builder says of its steps. Its network is the loopback of this run."""
        return self.run([_DOCKER, "build", "--network=host", "--progress=plain", *words])[1]

    def run(self, words: list[str], variables: Mapping[str, str] | None = None) -> tuple[str, str]:
        """Run a command, which must succeed; returns its output and its errors."""
        done = subprocess.run(
            words,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-3_000:]}{done.stderr[-6_000:]}"
        return done.stdout, done.stderr

    @contextmanager
    def engine(self) -> Iterator[None]:
        """Run the engine; its own network has nothing but loopback and what containers make in it."""
        subprocess.run(["ip", "link", "set", "lo", "up"], env=self.environment, check=True)
        self.data.mkdir()
        available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
        if available is not None and int(available[1]) >= _ROOM_KB:
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.data], env=self.environment, check=True)
        stated = {
            "--data-root": self.data / "docker",
            "--exec-root": self.folder / "exec",
            "--pidfile": self.folder / "docker.pid",
            "--host": self.address,
            "--cgroup-parent": f"/{self.folder.name}",
            # Not every machine lets a process be killed before others.
            "--oom-score-adjust": 0,
        }
        log = self.folder / "dockerd.log"
        words = ["dockerd", *(str(word) for option in stated.items() for word in option)]
        with log.open("ab") as stream:
            process = subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, process_group=0
            )
        try:
            end = time.monotonic() + _START_BOUND_S
            while not self._answers():
                said = log.read_text("utf-8", "replace")[-3_000:]
                assert process.poll() is None, f"the engine ended: {said}"
                assert time.monotonic() < end, f"the engine does not answer: {said}"
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(_START_BOUND_S)

    def _answers(self) -> bool:
        done = subprocess.run([_DOCKER, "version"], env=self.environment, capture_output=True, check=False)
        return done.returncode == 0


def machine_of_this_run() -> Machine:
    return Machine(Path(os.environ[FOLDER]))


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin")
    assert found is not None, f"{name} is not installed"
    return found
