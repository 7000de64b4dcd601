"""PostgreSQL with pg_trgm: for projects that use the database already.

Texts are folded by `unaccent`; beginnings come from B-trees, words and infixes by LIKE over a GIN index of trigrams,
typos by `word_similarity` over the same index, equals in order of popularity. See `postgres.sql`. The server runs on
loopback with its data in a folder, configured for one core and an index that fits in memory.

PostgreSQL refuses to run as root, so root lends it an unprivileged user and lets that user through to the folder.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psycopg

from bench.built_indices import size_mb
from bench.typeahead.peers.shops import Shop, public_shops
from bench.typeahead.peers.starting import python_transport, uvicorn_version
from bench.typeahead.system import BuildStats, RunningServer, System, descendants
from tests.support.real.postgres import answers, as_unprivileged, find_postgres_programs, make_cluster, unprivileged
from tests.support.real.process import ServerProcess, ending_with_input, free_ports

ADDRESS_FILE: Final = "address"
_START_BOUND_S: Final = 60.0
_END_BOUND_S: Final = 5.0
_POLL_S: Final = 0.02
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "512MB",
    "effective_cache_size": "4GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "512MB",
    "random_page_cost": "1.1",
    "max_connections": "40",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
_TABLES: Final = Path(__file__).with_name("postgres.sql")
_FILL: Final = """
CREATE TEMP TABLE typed AS
  SELECT DISTINCT pop_rank, folded(line) AS folded FROM lines;
INSERT INTO texts
  SELECT DISTINCT pop_rank, 1, folded FROM typed WHERE folded <> '';
INSERT INTO texts
  SELECT DISTINCT pop_rank, 2, array_to_string(words[at:], ' ')
  FROM (SELECT pop_rank, string_to_array(folded, ' ') AS words FROM typed) AS split,
    generate_series(2, cardinality(words)) AS at;
UPDATE shops SET words = all_texts.words, categories = ' ' || folded(shops.categories)
  FROM (SELECT pop_rank, string_agg(' ' || folded, '' ORDER BY folded) AS words
    FROM typed GROUP BY pop_rank) AS all_texts
  WHERE all_texts.pop_rank = shops.pop_rank;
CREATE INDEX ON texts (folded text_pattern_ops, kind, pop_rank);
CREATE INDEX ON texts (left(folded, 1), kind, pop_rank);
CREATE INDEX ON texts (left(folded, 2), kind, pop_rank);
CREATE INDEX ON shops USING gin (words gin_trgm_ops) WITH (fastupdate = off);
"""


class PostgresTrigram(System):
    """A server of its own, called over persistent connections by an ASGI application."""

    name = "postgres-trigram"
    about = (
        "PostgreSQL, pg_trgm and unaccent: beginnings by B-tree, words and infixes by LIKE over GIN trigrams in order "
        "of popularity, typos by word_similarity when nothing else is found, in one function; raw ASGI on uvicorn "
        "with psycopg."
    )

    def missing(self) -> str | None:
        """Debian's package is enough: its contrib modules are in it."""
        if find_postgres_programs(os.environ) is None:
            return "no PostgreSQL on this machine; `apt-get install postgresql` brings it with pg_trgm and unaccent"
        return None

    def version(self) -> str:
        """Of PostgreSQL, psycopg and uvicorn."""
        return f"{_server_version(_programs())}, psycopg {version('psycopg')}, {uvicorn_version()}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Make a cluster in the folder, fill it, index it; the size is that of tables and indexes."""
        data = folder / "data"
        _make_cluster(_programs(), data)
        with _running_cluster(_programs(), data, folder / "postgres.log") as (address, _):
            started = time.perf_counter()
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(_TABLES.read_bytes())
                _copy(connection, public_shops(corpus))
                connection.execute(_FILL.encode())
                connection.execute("VACUUM FULL ANALYZE")
                connection.execute("CHECKPOINT")
                row = connection.execute("SELECT pg_total_relation_size('shops') + pg_total_relation_size('texts')")
                size = row.fetchone()
        return BuildStats(time.perf_counter() - started, size_mb(data) if size is None else size[0] / 1_000_000)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Serve the cluster: the processes are the application and all of PostgreSQL's."""
        with _running_cluster(_programs(), folder / "data", folder / "postgres.log") as (address, server):
            (folder / ADDRESS_FILE).write_text(address, encoding="ascii")
            with python_transport("bench.typeahead.peers.postgres_transport", folder, server) as running:
                yield running


def _copy(connection: psycopg.Connection, shops: list[Shop]) -> None:
    """Bring the shops in, and their texts as they are written."""
    connection.execute("CREATE TEMP TABLE lines (pop_rank int, line text)")
    with connection.cursor() as cursor:
        with cursor.copy("COPY shops (pop_rank, id, name, domain, category, countries, categories) FROM STDIN") as copy:
            for shop in shops:
                names = " ".join(shop.category_names)
                markets = list(shop.countries) or None
                copy.write_row((shop.pop_rank, shop.id, shop.name, shop.domain, shop.category, markets, names))
        with cursor.copy("COPY lines FROM STDIN") as copy:
            for shop in shops:
                for text in shop.texts:
                    copy.write_row((shop.pop_rank, text))


def _programs() -> Path:
    programs = find_postgres_programs(os.environ)
    if programs is None:
        raise FileNotFoundError("PostgreSQL")
    return programs


def _make_cluster(programs: Path, data: Path) -> None:
    """Make an empty cluster in a folder that does not exist yet, with the `initdb` of another folder."""
    data.mkdir()
    if os.geteuid() == 0:
        owner = unprivileged()
        os.chown(data, owner.pw_uid, owner.pw_gid)
        _let_through(data)
    make_cluster(programs, data.resolve(), "--locale=C.UTF-8")


@contextmanager
def _running_cluster(programs: Path, data: Path, log: Path) -> Iterator[tuple[str, ServerProcess]]:
    """A server on the cluster's data: how to connect to it, and its process."""
    (port,) = free_ports(1)
    stated = {**_SETTINGS, "port": str(port)}
    options = [word for name, value in stated.items() for word in ("-c", f"{name}={value}")]
    # An interrupt makes it end without waiting for its clients.
    server = ending_with_input([str(programs / "postgres"), "-D", str(data.resolve()), *options], signal.SIGINT)
    process = ServerProcess(f"PostgreSQL at port {port}", [*as_unprivileged(), *server], log)
    address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    process.launch()
    try:
        process.wait_for(lambda: answers(address), "answering", _START_BOUND_S)
        yield address, process
    finally:
        working = descendants((process.pid,)) if process.running else []
        process.signal(signal.SIGINT)  # without waiting for its clients
        process.stop()
        _wait_for_end(working)


def _server_version(programs: Path) -> str:
    """Such as `PostgreSQL 17.2`."""
    command = [str(programs / "postgres"), "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
    return f"PostgreSQL {output.partition(') ')[2].split()[0]}"


def _wait_for_end(pids: Sequence[int]) -> None:
    """Wait for the process that watches standard input."""
    end = time.monotonic() + _END_BOUND_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(_POLL_S)


def _let_through(folder: Path) -> None:
    """Open the way to a folder in the pop_rank for temporary files, which is made closed to others."""
    temporary = Path(tempfile.gettempdir()).resolve()
    for parent in folder.resolve().parents:
        if temporary in parent.parents and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
