"""A holder is dead only when that is certain, and is named to those who wait (G4)."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any, Final

import pytest

from indexer.sinks.lease import LeaseHolder
from tests.support.real.sources import REPOSITORY

_PROGRAM: Final = """
import json
from indexer.sinks.lease import LeaseHolder
print(json.dumps(LeaseHolder.here("build").as_wire()), flush=True)
input()
"""


@pytest.mark.rule("G4")
def test_this_process_lives_and_one_before_it_with_its_number_does_not() -> None:
    here = LeaseHolder.here("build")
    assert here.started is not None
    assert (here.job, here.pid, here.is_dead()) == ("build", os.getpid(), False)
    assert replace(here, started=here.started - 1).is_dead()


@pytest.mark.rule("G4")
def test_a_process_is_dead_from_its_end_on_whether_or_not_its_parent_has_asked() -> None:
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        holder = LeaseHolder.from_wire(json.loads(process.stdout.readline()))
        assert (holder.pid, holder.is_dead()) == (process.pid, False)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert holder.is_dead()
    assert holder.is_dead()


@pytest.mark.rule("G4")
@pytest.mark.parametrize("fields", [{"machine": "another boot pid:[1]"}, {"machine": None}, {"started": None}])
def test_nothing_is_certain_of_a_process_that_cannot_be_seen(fields: dict[str, Any]) -> None:
    absent = replace(LeaseHolder.here("build"), pid=2**22 + 1)
    assert absent.is_dead()
    assert not replace(absent, **fields).is_dead()
