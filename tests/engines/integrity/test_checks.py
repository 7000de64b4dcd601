"""What checking files costs: each is read once for all stamps that share it, and slowly afterwards (E3)."""

import os
import time
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from index_mappings.embedded import FileSum
from service.runtime.telemetry import Metrics
from service.search.embedded import checks as module
from service.search.embedded.checks import CheckedFile, FileChecks
from service.search.failures import GenerationDamaged

_MIB: Final = 1024**2


class _Counted(Metrics):
    """How many bytes were read again."""

    read = 0

    def index_checked(self, size: int) -> None:
        self.read += size


def _file(folder: Path, content: bytes, name: str = "file") -> CheckedFile:
    path = folder / name
    path.write_bytes(content)
    return CheckedFile(path, f"a {name}", FileSum.of(content))


@pytest.mark.rule("E3")
def test_files_are_read_again_no_faster_than_they_may_be(tmp_path: Path) -> None:
    counted = _Counted()
    checks = FileChecks(counted, rate=8 * _MIB, pause=0.0)
    began = time.monotonic()
    checks.watch("generation", "stamp", [_file(tmp_path, bytes(2 * _MIB))])
    time.sleep(1.0)
    checks.close()
    # One piece of a quarter of a MiB is read before the first pause.
    assert 0 < counted.read <= 8 * _MIB * (time.monotonic() - began) + _MIB / 4


@pytest.mark.rule("E3")
def test_a_file_that_is_open_is_not_read_again_for_a_later_stamp(tmp_path: Path) -> None:
    checks = FileChecks(rate=1.0)
    file = _file(tmp_path, b"whole")
    checks.check("generation", [file])
    checks.watch("generation", "first", [file])
    file.path.write_bytes(b"wrong")
    checks.check("generation", [file])
    checks.release("first")
    with pytest.raises(GenerationDamaged, match=r"^the file a file is damaged$"):
        checks.check("generation", [file])
    checks.close()


@pytest.mark.rule("E3")
def test_a_file_that_lost_its_end_is_found_while_another_is_read_for_hours(tmp_path: Path) -> None:
    reading, damaged = Event(), Event()

    class Noticing(Metrics):
        def index_checked(self, _size: int) -> None:
            reading.set()

        def index_damaged(self, _count: int) -> None:
            damaged.set()

    checks = FileChecks(Noticing(), rate=1.0, pause=0.0)
    long, file = _file(tmp_path, bytes(16 * 1024), "long"), _file(tmp_path, b"whole")
    checks.watch("generation", "stamp", [long, file])
    assert reading.wait(10)
    os.truncate(file.path, 4)
    assert damaged.wait(10)
    assert checks.rounds == 0
    with pytest.raises(GenerationDamaged, match=r"^the file a file is damaged$"):
        checks.refuse_damaged("generation")
    checks.close()


@pytest.mark.rule("E3")
@pytest.mark.parametrize("damaged", ["one", "other"])
def test_of_two_files_with_the_same_content_each_is_read_again(tmp_path: Path, damaged: str) -> None:
    checks = FileChecks(pause=0.0)
    checks.watch("generation", "stamp", [_file(tmp_path, b"whole", name) for name in ("one", "other")])
    (tmp_path / damaged).write_bytes(b"cut")
    rounds = checks.rounds + 2
    while checks.rounds < rounds:
        time.sleep(0.01)
    with pytest.raises(GenerationDamaged, match=f"^the file a {damaged} is damaged$"):
        checks.refuse_damaged("generation")
    checks.close()


def test_checks_may_be_closed_while_another_thread_starts_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = Event()

    class SlowThread(Thread):
        def start(self) -> None:
            starting.set()
            time.sleep(0.2)
            super().start()

    monkeypatch.setattr(module, "Thread", SlowThread)
    checks = FileChecks()
    opening = Thread(target=checks.watch, args=("generation", "stamp", [_file(tmp_path, b"whole")]))
    opening.start()
    assert starting.wait(10)
    checks.close()
    opening.join()
