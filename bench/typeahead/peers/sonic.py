"""Sonic, the small search server in Rust that keeps ids only: the shops are looked up where it is asked from.

Equals come in the order in which they were pushed, so the most popular are pushed first. It has no filters: of a
market's answer more is asked for, and what trades elsewhere is dropped. It matches words, and their beginnings and
typos where there is not enough; Unicode normalization and the folding of diacritics are its own.
"""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import orjson

from bench.built_indices import size_mb
from bench.commands import printed
from bench.typeahead.peers.shops import Shop, public_shops
from bench.typeahead.peers.starting import python_transport, running, uvicorn_version
from bench.typeahead.system import BuildStats, RunningServer, System
from tests.support.real.process import ProcessError, ServerProcess, free_ports

CRATE: Final = "sonic-server"
PORT_FILE: Final = "port"
SHOPS_FILE: Final = "shops.ndjson"
_PUSH_BOUND_S: Final = 600.0
# Characters of one push: the server's buffer is 20,000 bytes.
_TEXT_MAX: Final = 4_000
_CONFIGURATION: Final = """
[server]
log_level = "error"

[channel]
inet = "127.0.0.1:{port}"
tcp_timeout = 86400

[normalization]
unicode_normalization = "nfkc"
diacritic_folding_enabled = true

[tokenization]
detect_special_patterns = false
compat_split_special_patterns = true

[search]
query_limit_maximum = 1000
query_alternates_try = 20
query_minimum_term_idf_default = 0.0

[store.kv]
path = "{folder}/kv/"
retain_word_objects = 2000
pool.inactive_after = 86400

[store.fst]
path = "{folder}/fst/"
pool.inactive_after = 86400
graph.consolidate_after = 180
graph.max_size = 262144
graph.max_words = 10000000
"""


class Sonic(System):
    """A server of its own, called over persistent connections by an ASGI application."""

    name = "sonic"
    about = (
        "Sonic by its channel protocol (QUERY): words, then their beginnings and typos, the most popular pushed first; "
        "NFKC and folding of diacritics on, no stop words; raw ASGI on uvicorn that looks the shops up."
    )

    def missing(self) -> str | None:
        """It is compiled from its crate."""
        if sonic_program() is None:
            return (
                f"no program `sonic`, neither on the PATH nor where cargo puts programs: `cargo install {CRATE} "
                "--locked` compiles it (half an hour of one core; it needs g++ and libclang)"
            )
        return None

    def version(self) -> str:
        """Of Sonic and uvicorn."""
        return f"Sonic {printed([_program(), '--version']).split()[-1]}, {uvicorn_version()}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Push every shop, let Sonic put its words in order, and keep the shops for the look-up."""
        shops = public_shops(corpus)
        with (folder / SHOPS_FILE).open("wb") as file:
            for shop in shops:
                row = (shop.id, shop.name, shop.domain, shop.category)
                file.write(orjson.dumps((row, shop.countries)) + b"\n")
        started = time.perf_counter()
        with _running(folder) as (port, _):
            with closing(_Channel(port, "ingest")) as ingest:
                for shop in shops:
                    ingest.ask(f'PUSH shops all {shop.id} "{quoted(_text(shop))}" LANG(none)')
            with closing(_Channel(port, "control")) as control:
                control.ask("TRIGGER consolidate")
        return BuildStats(time.perf_counter() - started, size_mb(folder / "kv") + size_mb(folder / "fst"))

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Serve both."""
        with _running(folder) as (sonic_port, server):
            (folder / PORT_FILE).write_text(str(sonic_port), encoding="ascii")
            with python_transport("bench.typeahead.peers.sonic_transport", folder, server) as both:
                yield both


def sonic_program() -> str | None:
    """On the PATH, or where `cargo install` puts programs."""
    cargo_home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    search_path = os.pathsep.join((os.environ.get("PATH", ""), str(Path(cargo_home) / "bin")))
    return shutil.which("sonic", path=search_path)


def quoted(text: str) -> str:
    """As it stands between the quotes of a command."""
    return " ".join(text.replace("\\", " ").replace('"', " ").split())


class _Channel:
    """One connection of Sonic's protocol, line by line."""

    def __init__(self, port: int, mode: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_PUSH_BOUND_S)
        self._lines = self._socket.makefile("r", encoding="utf-8", newline="\n")
        try:
            self._lines.readline()
            self.ask(f"START {mode}")
        except BaseException:
            self.close()
            raise

    def ask(self, command: str) -> str:
        """Send a command and return the line that answers it."""
        self._socket.sendall(f"{command}\n".encode())
        answer = self._lines.readline().strip()
        if not answer or answer.startswith(("ERR", "ENDED")):
            raise ProcessError(f"Sonic refused a command: {answer}")
        return answer

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def _running(folder: Path) -> Iterator[tuple[int, ServerProcess]]:
    (port,) = free_ports(1)
    directory = folder.resolve()
    configuration = directory / "sonic.toml"
    configuration.write_text(_CONFIGURATION.format(port=port, folder=directory), encoding="utf-8")
    command = [_program(), "-c", str(configuration)]
    with running("Sonic", command, port, directory / "sonic.log", _answers) as process:
        yield port, process


def _answers(port: int) -> bool:
    try:
        with closing(_Channel(port, "search")):
            return True
    except (OSError, ProcessError):
        return False


def _text(shop: Shop) -> str:
    return " ".join((*shop.texts, *shop.category_names))[:_TEXT_MAX]


def _program() -> str:
    program = sonic_program()
    if program is None:
        raise FileNotFoundError("sonic")
    return program
