"""The slowest requests that are known, from many clients at the same time: another client is answered meanwhile."""

import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.engines.integration.test_embedded_queries import UNKNOWN
from tests.engines.typeahead.crowded import HAN
from tests.processes.endurance.locations import Location
from tests.processes.load.loads import load
from tests.processes.load.plan import Plan
from tests.processes.load.questions import suggestion, tool
from tests.support.callers import issue
from tests.support.served import get
from tests.support.service_process import serving

CLIENTS: Final = 32
_HAN: Final = " ".join(HAN[start : start + 7] for start in range(0, 56, 7))
BOUND_S: Final = 1.0
# Other work of the machine only ever adds: one round of these in which the bound holds shows that it can.
ROUNDS: Final = 3


@pytest.mark.slow
@pytest.mark.rule("E1.retry_after")
def test_health_is_answered_while_many_ask_what_takes_longest(embedded: Location, tmp_path: Path) -> None:
    with serving(tmp_path / "service", embedded.settings()) as service:
        token = issue(service.tokens).text
        questions = (
            suggestion(f"q={quote(_HAN)}"),
            suggestion(f"q={quote('lamp ' * 12)}&country=SE"),
            suggestion(f"q={quote('lamq-s3.internol.shoq')}"),
            tool("find_shop", {"query": UNKNOWN}, token),
            tool("find_shop", {"query": " ".join(UNKNOWN[start : start + 15] for start in range(0, 180, 15))}, token),
        )
        with load(Plan((service.port,), questions, CLIENTS)) as making:
            rounds: list[list[float]] = []
            while len(rounds) < ROUNDS and not any(max(taken) < BOUND_S for taken in rounds):
                rounds.append([])
                for _ in range(20):
                    start = time.monotonic()
                    assert get(service.base, "/health").status == 200
                    rounds[-1].append(time.monotonic() - start)
                    time.sleep(0.1)
            result = making.stopped()
        assert result.cut == ()
        assert {row.status for row in result.rows} <= {200, 503}
        assert len(result.answered) > CLIENTS
        assert any(max(taken) < BOUND_S for taken in rounds), rounds
