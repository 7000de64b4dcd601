"""Each peer of the comparison builds a few shops and answers what was typed with the right shop first.

A peer whose software is absent is said to be absent, with how to get it: none is left out silently.
"""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from opensearchpy import OpenSearch

from bench.typeahead.peers import PEERS
from bench.typeahead.peers.opensearch_raw import OpenSearchAsYouType, OpenSearchCompletion, RawOpenSearch
from bench.typeahead.peers.shops import public_shops
from bench.typeahead.system import System, descendants
from tests.support.catalogues import shop, write_catalogue

COMPILED = "sonic"
OVER_OPENSEARCH = (OpenSearchAsYouType, OpenSearchCompletion)
SHOPS = [
    *(shop(f"Filler {number:02}", f"filler-{number:02}.internal", popularity=0.1) for number in range(42)),
    shop("Northwind Lamps", "lamps.internal", popularity=0.5),
    shop("Grüne Säge", "saege.internal"),
    shop("Blue Kettle", "blue.internal", aliases=["Teatime"], popularity=0.2),
    shop("Kettle of Fish", "fish.internal", popularity=0.9),
    shop("Marble & Oak", "marble-oak.internal", countries=["DE"], popularity=0.3),
    shop("Marble Arch", "marble-arch.internal", countries=["FR"], popularity=0.4),
    shop("Marble Hall", "marble-hall.internal", countries=["WORLDWIDE"], popularity=0.2),
    shop("Hidden Lighthouse", "lighthouse.internal", popularity=1.0, visibility="under_review"),
]
FIRST = {
    "north": "shop_lamps_internal",
    "northwind lam": "shop_lamps_internal",
    "nortwind": "shop_lamps_internal",
    "grune sa": "shop_saege_internal",
    "teat": "shop_blue_internal",
    "kettle": "shop_fish_internal",
    "https://www.marble-hall.internal/basket?x=1": "shop_marble-hall_internal",
    "m": "shop_marble-arch_internal",
    "": "shop_fish_internal",
}
# Completion has nothing for a blank text: it completes what was begun.
UNANSWERED = {OpenSearchCompletion.name: [""]}
Ask = Callable[..., list[str]]


@pytest.mark.parametrize("kind", [peer for peer in PEERS if peer not in OVER_OPENSEARCH], ids=lambda kind: kind.name)
def test_a_peer_answers_with_the_right_shop_first(
    kind: type[System], tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = kind()
    if (absent := peer.missing()) is not None:
        with capsys.disabled():
            print(f"\nABSENT: {peer.name}: {absent}")  # noqa: T201 - said loudly
        assert "install" in absent
        assert peer.name == COMPILED or not pytestconfig.getoption("--require-real")
        return
    # Not in pytest's folder: each start of pytest closes that to the user that PostgreSQL runs as.
    with TemporaryDirectory(prefix="shop-directory-peer-") as folder:
        built = peer.build(_corpus(tmp_path), Path(folder))
        assert built.seconds > 0
        with peer.serving(Path(folder)) as served, _asking(peer, served.port) as ask:
            _check(peer, ask)
            pids = descendants(served.pids)
    assert built.index_mb > 0 or peer.name in {"minisearch", "orama"}
    assert any(character.isdigit() for character in peer.version())
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.opensearch
@pytest.mark.parametrize("kind", OVER_OPENSEARCH, ids=lambda kind: kind.name)
def test_a_raw_opensearch_answers_with_the_right_shop_first(
    kind: type[RawOpenSearch], tmp_path: Path, opensearch_url: str
) -> None:
    peer = kind()
    with closing(OpenSearch([opensearch_url])) as client:
        try:
            peer.fill(client, public_shops(_corpus(tmp_path)))
            with _asking(peer, int(opensearch_url.rpartition(":")[2])) as ask:
                _check(peer, ask)
        finally:
            client.indices.delete(index=peer.index_name, ignore_unavailable=True)


def _corpus(folder: Path) -> Path:
    return write_catalogue(folder / "shops.ndjson", SHOPS)


def _check(peer: System, ask: Ask) -> None:
    unanswered = UNANSWERED.get(peer.name, [])
    expected = {typed: [] if typed in unanswered else [shop_id] for typed, shop_id in FIRST.items()}
    assert {typed: ask(typed)[:1] for typed in FIRST} == expected
    assert set(ask("marble", "DE")) == {"shop_marble-oak_internal", "shop_marble-hall_internal"}
    assert len(ask("fill")) == 8
    assert "shop_lighthouse_internal" not in ask("hidden lighthouse")


@contextmanager
def _asking(peer: System, port: int) -> Iterator[Ask]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(typed: str, country: str | None = None) -> list[str]:
        connection.request("GET", peer.path(typed, country))
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == http.HTTPStatus.OK, json.loads(body)
        return peer.ids(body)

    yield ask
    connection.close()
