"""Reports once that a real part did not start: the first test that needs it fails, and the others are not run.

Each of them would wait for the part in vain, or repeat its message.
"""

from collections.abc import Generator
from typing import Any, Final

import pytest

# The fixtures that start a part for all tests of a session.
_STARTING: Final = frozenset({
    "opensearch_url", "spare_node_of_session", "redis_url", "redis_cluster", "postgres_url", "browser",
})  # fmt: skip
# A marker asks for a part as well, and its tests for the fixture while they run.
_MARKED: Final = {"opensearch_url": "opensearch", "redis_url": "redis", "postgres_url": "postgres"}
_FAILED: Final = pytest.StashKey[dict[str, int]]()
# By this name a worker of pytest-xdist reports what it did not run.
_OUTPUT: Final = "not_started"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note the fixtures that fail to start a part."""
    try:
        return (yield)
    except Exception:
        if fixturedef.argname in _STARTING:
            request.config.stash.setdefault(_FAILED, {}).setdefault(fixturedef.argname, 0)
        raise


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Pass over a test whose part did not start."""
    failed = item.config.stash.get(_FAILED, {})
    for fixture in failed:
        marker = _MARKED.get(fixture)
        asked = marker is not None and item.get_closest_marker(marker) is not None
        if asked or fixture in getattr(item, "fixturenames", ()):
            failed[fixture] += 1
            item.session._setupstate.teardown_exact(nextitem)
            return True
    return None


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = session.config.stash.get(_FAILED, {})


class _OfWorkers:
    """The hook of pytest-xdist, in the process that its workers report to."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ANN401 - a class of the library's inside
        """Add up what the workers did not run."""
        del error
        failed = node.config.stash.setdefault(_FAILED, {})
        for fixture, count in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
            failed[fixture] = failed.get(fixture, 0) + count


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_OfWorkers())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for fixture, count in config.stash.get(_FAILED, {}).items():
        line = f"NOT RUN: {count} test(s) after the one that failed as {fixture} did not start"
        terminalreporter.write_line(line, red=True, bold=True)
