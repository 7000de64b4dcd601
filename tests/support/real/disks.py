"""A small disk of its own for a test: filled and made read-only as real ones are; needs root, or sudo."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_AS_ROOT = () if os.geteuid() == 0 else ("sudo", "-n")


class SmallDisk:
    """A file system in memory, mounted at a folder where everybody may write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def full(self) -> Iterator[None]:
        filler = self.folder / "filler"
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(b"\0" * 4_096):
                    pass
        except OSError:
            pass
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Every write fails within. Files that were open for writing keep a disk writable: close them all before."""
        _run("mount", "-o", "remount,ro", str(self.folder))
        try:
            yield
        finally:
            _run("mount", "-o", "remount,rw", str(self.folder))


@contextmanager
def small_disk(folder: Path, kib: int = 512) -> Iterator[SmallDisk]:
    """Mount a file system of so many KiB in a folder that is made for it; it is gone in the end."""
    folder.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=1777", "tmpfs", str(folder))
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run([*_AS_ROOT, *command], check=True)
