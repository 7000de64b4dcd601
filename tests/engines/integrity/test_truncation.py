"""Files cut short under a serving process: it answers rightly or not at all, and may only end where it maps the file.

Four in CI; SHOP_DIRECTORY_TRUNCATIONS=200 is the long form. Looking beyond the end of a mapped file ends a process, and
the embedded engine maps all of its files: how often that happened is logged.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from index_mappings.integrity import COMMITTED
from tests.engines.integrity.test_damage import damages
from tests.engines.integrity.world import DamagedWorld
from tests.support.real.process import free_ports
from tests.support.real.sources import REPOSITORY

TRUNCATIONS: Final = int(os.environ.get("SHOP_DIRECTORY_TRUNCATIONS", "4"))
_READS: Final[tuple[tuple[str, str, dict[str, Any] | None], ...]] = (
    ("GET", "/suggest?q=l", None),
    ("POST", "/tool/find_shop", {"query": "lamps"}),
    ("POST", "/tool/find_shop", {"query": ""}),
    ("POST", "/tool/list_categories", {}),
    ("POST", "/tool/get_shop", {"shop_domain": "d1.internal"}),
    ("POST", "/tool/get_shipping_policy", {"shop_domain": "d2.internal"}),
)
_LOG: Final = logging.getLogger(__name__)
_START_BOUND_S: Final = 60.0
# Stamp and cached answers are trusted for two seconds, and all files of this small generation are read in two.
_FOUND_BOUND_S: Final = 10.0


class _Service:
    """The service as a process of its own."""

    def __init__(self, root: Path, folder: Path) -> None:
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "shop_directory", "serve", "--port", str(port)]
        environment = {
            **os.environ,
            "SHOP_DIRECTORY_DATA_DIR": str(root),
            "SHOP_DIRECTORY_STATE_DIR": str(folder / "service"),
            "SHOP_DIRECTORY_QUOTA_ANONYMOUS": '{"reads": 1000000, "suggest": 1000000, "reports": 0}',
            "PYTHONPATH": str(REPOSITORY),
        }
        with (folder / "service.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=10.0)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        end = time.monotonic() + _START_BOUND_S
        while self.status("/ready") != 200:
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)

    def status(self, path: str) -> int | None:
        try:
            return self.client.get(path).status_code
        except httpx2.TransportError:
            return None

    def answers(self) -> list[Any] | None:
        """What each read says, None in the place of 503; None if the process ended."""
        found = []
        for method, path, body in _READS:
            try:
                answer = self.client.request(method, path, json=body)
            except httpx2.TransportError:
                return None
            if answer.status_code == 503:
                assert answer.json()["code"] == "backend_unavailable"
            else:
                assert answer.status_code == 200, (path, answer.text)
            found.append(None if answer.status_code == 503 else answer.json())
        return found

    def until_found(self) -> bool:
        """Wait until the service knows of a damage, or for as long as that takes; whether it still runs."""
        end = time.monotonic() + _FOUND_BOUND_S
        while time.monotonic() < end and self.process.poll() is None and "damaged" not in self.readiness():
            time.sleep(0.1)
        return self.process.poll() is None

    def readiness(self) -> str:
        try:
            return self.client.get("/ready").text
        except httpx2.TransportError:
            return ""

    def stop(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(30.0)


@pytest.mark.slow
@pytest.mark.rule("E3")
def test_no_file_that_is_cut_short_while_serving_gives_a_wrong_answer(tmp_path: Path) -> None:
    world = DamagedWorld(tmp_path)
    mapped = [path for path in world.files() if COMMITTED in path.parts and path.suffix not in {".json", ".files"}]
    others = [path for path in world.files() if path.suffix == ".segment"]
    lost = refused = 0
    service = _Service(world.root, tmp_path)
    right = service.answers()
    files = [path for pair in zip(mapped, cycle(others), strict=False) for path in pair]
    for damage in damages(files, 0, TRUNCATIONS, seed=3):
        whole = damage.path.read_bytes()
        damage.do()
        found = service.answers() if service.until_found() else None
        damage.path.write_bytes(whole)
        if found is None:
            assert service.process.wait(10.0) == -signal.SIGBUS
            assert damage.path in mapped, damage
            lost += 1
            service = _Service(world.root, tmp_path)
            continue
        assert right is not None
        assert all(answer in (expected, None) for answer, expected in zip(found, right, strict=True)), damage
        refused += None in found
        service.wait_until_ready()
    service.stop()
    world.sink.close()
    _LOG.info("%d files cut short: %d times no answers, %d processes lost", TRUNCATIONS, refused, lost)
    assert refused + lost == TRUNCATIONS
