"""What of the pages is not run by the tests: each command or block by its exact text, why, and what stands in for it.

The list is as short as honesty allows. A line that no page has any more fails, and so does a command that is neither
run nor here.
"""

from dataclasses import dataclass
from typing import Final

_ENGINE: Final = "needs a container engine"
_COMPOSITION: Final = "tests/people/containers runs the commands, environments and checks of all containers without one"
_HOURS: Final = "minutes to hours of measuring"
_CI: Final = "the tests run within it"


@dataclass(frozen=True, slots=True)
class NotRun:
    """A command or a whole block that no test runs.

    Attributes:
        page: where it stands; empty for a command that may stand on any page.
        text: the command without its comment; of a block that is no shell's, its first line.
        reason: why it can't be run.
        instead: what stands in for it.
    """

    page: str
    text: str
    reason: str
    instead: str

    def names(self, page: str, command: str) -> bool:
        """Whether it is about this command on this page."""
        return self.page in {"", page} and self.text == command


NOT_RUN: Final = (
    NotRun("", "make test", _CI, ".ci/run runs these tests"),
    NotRun("", "make check", "CI calls it just before the tests", ".ci/run"),
    NotRun("", "make relevance", "asks for the development data", "tests/engines/relevance"),
    NotRun("", "make bench", _HOURS, "tests/unit/bench"),
    NotRun("docs/containers.md", "make up", _ENGINE, _COMPOSITION),
    NotRun("docs/containers.md", "make up CATALOGUE=/srv/shops", _ENGINE, _COMPOSITION),
    NotRun("docs/containers.md", "docker compose exec service cat /run/shop-directory/ops_key", _ENGINE, _COMPOSITION),
    NotRun(
        "docs/containers.md",
        'docker compose exec service shop-directory token new --name "price widget" --expires 90d',
        _ENGINE,
        "tests/people/containers/test_commands.py issues a token in that environment",
    ),
    NotRun("docs/containers.md", "docker volume create shops", _ENGINE, _COMPOSITION),
    NotRun(
        "docs/containers.md",
        "docker run --rm --init -v shops:/var/lib/shop-directory shop-directory:local index build",
        _ENGINE,
        _COMPOSITION,
    ),
    NotRun(
        "docs/containers.md",
        "docker run -d --init --read-only --tmpfs /tmp -p 127.0.0.1:8080:8080 -v shops:/var/lib/shop-directory \\\n"
        "  -e SHOP_DIRECTORY_OPEN_OPERATIONS=true shop-directory:local",
        _ENGINE,
        _COMPOSITION,
    ),
    NotRun("docs/indexing-speed.md", "python -m bench.indexing --shops 50000 --rounds 3", _HOURS, "tests/unit/bench"),
    NotRun(
        "docs/indexing-speed.md",
        "python -m bench.indexing --memory 100000 1000000",
        _HOURS,
        "make soak builds 300,000 shops",
    ),
    NotRun("docs/performance.md", 'make bench SHOPS="10000 100000 1000000"', _HOURS, "tests/unit/bench"),
    NotRun(
        "docs/performance.md",
        'make bench BENCH_ARGS="--only bare,embedded-cold,embedded-warm --rounds 1"',
        _HOURS,
        "tests/unit/bench",
    ),
    NotRun(
        "docs/performance.md",
        ".venv/bin/python -m bench.page --shops 100000",
        "minutes of measuring",
        "tests/people/web/test_measuring.py",
    ),
    NotRun("docs/architecture.md", "catalogue (NDJSON, SQL) ──> indexer", "a drawing", "tests of the import contracts"),
    NotRun(
        "docs/acceptance-queries.md",
        "2 of 6 acceptance queries failed",
        "what a failure says",
        "tests/engines/integration/test_acceptance_queries.py",
    ),
)


@dataclass(frozen=True, slots=True)
class RunBy:
    """The blocks of one language on a page that the test file of their subject, which names the page, runs."""

    page: str
    language: str
    test: str


RUN_BY: Final = (
    RunBy("README.md", "bash", "tests/people/docs/test_hosts.py"),
    RunBy("README.md", "python", "tests/people/docs/test_programs.py"),
    RunBy("README.md", "ts", "tests/people/docs/test_programs.py"),
    RunBy("docs/catalogue.md", "ndjson", "tests/unit/indexer/catalogue/test_page.py"),
    RunBy("docs/clients.md", "bash", "tests/people/docs/test_hosts.py"),
    RunBy("docs/clients.md", "json", "tests/people/docs/test_hosts.py"),
    RunBy("docs/clients.md", "toml", "tests/people/docs/test_hosts.py"),
    RunBy("docs/clients.md", "python", "tests/people/docs/test_programs.py"),
    RunBy("docs/clients.md", "ts", "tests/people/docs/test_programs.py"),
    RunBy("docs/clients.md", "html", "tests/people/web/test_widget.py"),
    RunBy("docs/clients.md", "js", "tests/people/web/test_widget.py"),
    RunBy("docs/clients.md", "css", "tests/people/web/test_widget.py"),
    RunBy("docs/commands.md", "bash", "tests/people/commands/test_examples.py"),
    RunBy("docs/acceptance-queries.md", "ndjson", "tests/engines/integration/test_acceptance_queries.py"),
    RunBy("docs/metrics.md", "yaml", "tests/people/docs/test_configurations.py"),
    RunBy("docs/opensearch-security.md", "json", "tests/people/settings/test_security_page.py"),
    RunBy("docs/operations.md", "yaml", "tests/people/docs/test_configurations.py"),
    RunBy("docs/rechecks.md", "python", "tests/rules/reports/test_docs.py"),
    RunBy("docs/rechecks.md", "redis", "tests/rules/reports/test_docs.py"),
    RunBy("docs/redis.md", "redis", "tests/people/docs/test_configurations.py"),
    RunBy("docs/sql-source.md", "sql", "tests/people/docs/test_configurations.py"),
    RunBy("docs/sql-source.md", "toml", "tests/unit/indexer/sources/sql/test_mapping.py"),
)
