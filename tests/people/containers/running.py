"""Runs what the containers run: the very commands of image and composition, with their environment and no other.

Paths and addresses within containers become those of a folder of the test and of the real parts; nothing else changes.
"""

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.people.containers.building import Installed
from tests.people.containers.composition import variables_of, words_of
from tests.people.containers.image import stages

BOUND_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Where containers' commands run: a clean folder, with a log for each command.

    `stands_for` is the replacement of each text, the longer ones first.
    """

    installed: Installed
    services: Mapping[str, Any]
    stands_for: Mapping[str, str]
    folder: Path

    def words(self, words: Sequence[str]) -> list[str]:
        """A command as it is run here."""
        return [self._here(word) for word in words]

    def command(self, name: str) -> list[str]:
        """What a container of ours runs: its entrypoint, or the image's, then its command."""
        found, image = self.services[name], stages()[-1]
        entrypoint = words_of(found.get("entrypoint")) or list(image.only("ENTRYPOINT").words)
        return self.words([*entrypoint, *(words_of(found.get("command")) or image.only("CMD").words)])

    def environment(self, name: str, **arguments: str) -> dict[str, str]:
        """The image's environment and what the composition adds; the rest of this machine's stays out."""
        given = stages()[-1].environment(**arguments) | variables_of(self.services[name])
        found = {key: self._here(value) for key, value in given.items()}
        return found | {"PATH": f"{self.installed.programs}:/usr/local/bin:/usr/bin:/bin"}

    def probe(self, name: str) -> list[str]:
        """The command of a container's health check: the composition's, else the image's."""
        stated = words_of((self.services[name].get("healthcheck") or {}).get("test"))
        words = stated or list(stages()[-1].only("HEALTHCHECK").words)
        return self.words(words[1:]) if words[0] == "CMD" else ["/bin/sh", "-c", self._here(words[1])]

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            words, cwd=self.workdir, env=environment, capture_output=True, text=True, timeout=BOUND_S, check=False
        )

    @contextmanager
    def started(self, name: str, words: Sequence[str], environment: Mapping[str, str]) -> Iterator["Running"]:
        """Start a command that goes on until it gets a signal; it is killed at the end if it still runs."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as stream:
            process = subprocess.Popen(
                words, cwd=self.workdir, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.wait()

    @property
    def workdir(self) -> Path:
        """The image's working directory."""
        return Path(self._here(stages()[-1].only("WORKDIR").words[0]))

    def _here(self, text: str) -> str:
        for there, here in self.stands_for.items():
            text = text.replace(there, here)
        return text


@dataclass(frozen=True, slots=True)
class Running:
    """A command that goes on."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """What it has said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> int:
        """Stop it as Docker does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND_S)

    def becomes(self, machine: Machine, probe: Sequence[str], environment: Mapping[str, str]) -> None:
        """Wait until a health check succeeds."""
        end = time.monotonic() + BOUND_S
        while machine.run(probe, environment).returncode != 0:
            assert self.process.poll() is None, f"it has ended: {self.said}"
            assert time.monotonic() < end, f"it does not become healthy: {self.said}"
            time.sleep(0.2)
