"""What processes of a machine may do in the folder that they share."""

import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from index_mappings.typeahead.manifest import SegmentUse, TypeaheadManifest
from service.search.opensearch.folder import FolderLocation, NeededManifests, TypeaheadFolder
from service.search.opensearch.typeahead import READ_ONLY

_SUFFIX = ".segment"
_REPOSITORY = Path(__file__).parents[5]
# Prints what /ready says where no file can be written, as a user who has no rights of root.
_UNPRIVILEGED = """
import os, sys
from pathlib import Path
from service.search.failures import TypeaheadUnavailable
from service.search.opensearch.typeahead import translate_failures
from service.search.opensearch.typeahead import READ_ONLY
from service.search.opensearch.folder import TypeaheadFolder

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    with translate_failures():
        TypeaheadFolder(Path(sys.argv[1])).try_lock("a" * 64)
except TypeaheadUnavailable as error:
    print(error)
"""


def _write(folder: TypeaheadFolder, data: bytes) -> str:
    name = sha256(data).hexdigest()
    lock = folder.try_lock(name)
    assert lock is not None
    with folder.begin(name, _SUFFIX, len(data)) as part:
        part.write(0, data)
        part.finish()
    os.close(lock)
    return name


def test_a_folder_that_is_read_only_or_another_users_is_said_to_be() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        for path in (folder, folder / "below"):
            command = [sys.executable, "-c", _UNPRIVILEGED, str(path)]
            done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=60, check=True)
            assert done.stdout == f"{READ_ONLY}\n"


def test_tidying_leaves_what_is_needed_or_young_or_not_ours(tmp_path: Path) -> None:
    folder = TypeaheadFolder(tmp_path)
    needed, young, old = (_write(folder, data) for data in (b"needed", b"young", b"old"))
    (tmp_path / "README").write_text("of the operator")
    (tmp_path / f"{old}.part").write_bytes(b"of a killed process")
    now = time.time()
    for path in tmp_path.iterdir():
        written = now if path.stem == young else now - 3_600
        os.utime(path, (written, written))
    folder.tidy({needed})
    files = {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"}
    assert files == {f"{needed}{_SUFFIX}", f"{young}{_SUFFIX}", "README"}
    assert folder.usage() == (2, len(b"needed" + b"young"))


def test_tidying_takes_no_file_from_a_process_that_writes_it(tmp_path: Path) -> None:
    folder = TypeaheadFolder(tmp_path)
    lock = folder.try_lock("a" * 64)
    assert lock is not None
    part = tmp_path / f"{'a' * 64}.part"
    part.write_bytes(b"half")
    folder.tidy((), grace=-1.0)
    assert part.exists()
    assert folder.try_lock("a" * 64) is None
    os.close(lock)
    folder.tidy((), grace=-1.0)
    assert not part.exists()


def test_the_folder_below_the_systems_one_names_user_and_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.search.opensearch.folder.gettempdir", lambda: "/temporary")
    folder = FolderLocation().folder("shops")
    assert folder == Path(f"/temporary/shop-directory-typeahead-{os.geteuid()}-shops")
    assert FolderLocation(Path("/cache/shops")).folder("shops") == Path("/cache/shops")


def _manifest(letter: str) -> TypeaheadManifest:
    return TypeaheadManifest(((SegmentUse(letter * 64, 1, 1),),))


def test_files_of_two_stamps_of_two_generations_and_of_what_is_announced_stay() -> None:
    needed = NeededManifests()
    for generation, letters in (("g0", "a"), ("g1", "bcd"), ("g2", "ef")):
        for letter in letters:
            needed.add(generation, f"manifest-{letter}", _manifest(letter))
    assert {name[-1] for name in needed.names()} == set("cdef")
    needed.announce("manifest-0", _manifest("0"))
    needed.announce("manifest-1", _manifest("1"))
    needed.add("g1", "manifest-d", _manifest("d"))
    needed.add("g3", "manifest-9", _manifest("9"))
    assert {name[-1] for name in needed.names()} == set("cd91")
