"""Several segments in every build: answers byte by byte those of one, built, followed, merged, and after a kill."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import quote

import pytest

from indexer.jobs.following import Following, FollowOptions
from indexer.sinks.protocol import Sink
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from service.app import create_app
from service.limits.policy import QuotaClass
from shop_directory.typeahead.manifest import SegmentUse
from shop_directory.typeahead.writing.editor import TypeaheadEditor
from shop_directory.typeahead.writing.merging import weight
from shop_directory.typeahead.writing.segment_file import open_segment
from shop_directory.typeahead.writing.store import TypeaheadStore
from tests.processes.endurance.worlds import EMBEDDED, OPENSEARCH, Location
from tests.support.catalogues import delete, shop, upsert, write_catalogue_directory
from tests.support.emptying import unused_prefix
from tests.support.real.sources import REPOSITORY
from tests.support.served import get, post, served, settings_in, until_ready

_COUNTRIES: Final = ((), ("DE",), ("DE", "FR"), ("WORLDWIDE",))
_FIRST: Final = ("Kestrel", "Wren", "Harbour", "Moss", "Müller", "厨房", "The Owl", "Kes")
_SECOND: Final = ("Books", "Lane", "& Fern", "Garden", "Küche", "", "24", "Shop")
# Each shop has some five to ten texts.
_SMALL: Final = 60
# A build of `Location` in a process that is killed when it has written this many segments.
_KILLED: Final = """
import os, signal, sys
from pathlib import Path
from shop_directory.typeahead.writing.build import TypeaheadBuild
from shop_directory.typeahead.writing.store import TypeaheadStore
from tests.processes.endurance.worlds import Location

TypeaheadStore.segment_texts, left, segment = int(sys.argv[1]), int(sys.argv[2]), TypeaheadBuild._segment

def killed(self, uses):
    global left
    found, left = segment(self, uses), left - 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

TypeaheadBuild._segment = killed
Location(*sys.argv[3:6], Path(sys.argv[6])).build(Path(sys.argv[7]))
"""


def _shops(count: int) -> list[dict[str, Any]]:
    return [
        shop(
            f"{_FIRST[number % 8]} {_SECOND[number // 8 % 8]}".strip(),
            f"{'abcdefgh'[number % 7]}{number}.internal",
            id=f"s{number:03}",
            aliases=[f"Alias {number % 5}"] if number % 3 == 0 else [],
            categories=[("books", "garden", "tools")[number % 3]],
            countries=list(_COUNTRIES[number % 4]),
            popularity=None if number % 5 == 0 else float(number * 37 % 11),
            visibility="under_review" if number % 13 == 0 else "public",
            version=1,
        )
        for number in range(count)
    ]


Locations = Callable[[str], Location]


@pytest.fixture(params=[EMBEDDED, pytest.param(OPENSEARCH, marks=pytest.mark.opensearch)])
def locations(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Locations]:
    """A location for each name, on one engine."""
    if request.param == EMBEDDED:
        yield lambda name: _located(EMBEDDED, str(tmp_path / name / "index"), "", tmp_path / name)
        return
    url = request.getfixturevalue("opensearch_url")
    with unused_prefix(url) as prefix:
        yield lambda name: _located(OPENSEARCH, url, f"{prefix}-{name}", tmp_path / name)


def _located(kind: str, target: str, prefix: str, folder: Path) -> Location:
    location = Location(kind, target, prefix, folder)
    location.temporary.mkdir(parents=True)
    return location


def _covering(sink: Sink) -> dict[SegmentUse, int]:
    """The segments of the live generation, from the oldest to the newest, with their weights."""
    live = sink.live()
    assert live is not None
    with closing(sink.edit(live.generation)) as editor:
        assert editor.typeahead.damaged() == ()
        assert isinstance(editor.typeahead, TypeaheadEditor)
        store = editor.typeahead._store
        covering = store.manifest(live.typeahead).coverings[0]
        return {use: weight(open_segment(store.fetch(use.name, ".segment")).contents) for use in covering}


@contextmanager
def _serving(location: Location) -> Iterator[str]:
    given: dict[str, Any] = {name.lower(): value for name, value in location.settings().items()}
    if "opensearch_urls" in given:
        given["opensearch_urls"] = (given["opensearch_urls"],)
    plenty = QuotaClass(reads=10**6, suggest=10**6, reports=0)
    folder = location.folder.with_suffix(".service")
    folder.mkdir(exist_ok=True)
    with served(create_app(settings_in(folder, quota_anonymous=plenty, **given))) as base:
        until_ready(base)
        yield base


def _all_answers(location: Location) -> dict[tuple[str, ...], bytes]:
    with _serving(location) as base:
        return _answers(base)


def _answers(base: str) -> dict[tuple[str, ...], bytes]:
    """Bodies of suggest requests and of all pages of find_shop, with exact totals and cursors."""
    texts = ("k", "ke", "kes", "kestrel", "kestrle", "wren b", "books", "harbour lane", "mu", "muller", "厨", "the o")
    more_texts = ("owl", "alias 3", "a1", "b8.in", "shop", "garden", "s", "24", "zz", "müller kuche books")
    found: dict[tuple[str, ...], bytes] = {}
    for text in (*texts, *more_texts):
        for more in ("", "&country=DE", "&limit=1", "&limit=3&country=JP"):
            found["suggest", text, more] = get(base, f"/suggest?q={quote(text)}{more}").body
        cursor: str | None = None
        for page in range(4):
            body: dict[str, Any] = {"query": text, "limit": 7, **({"cursor": cursor} if cursor else {})}
            reply = post(base, "/tool/find_shop", body)
            assert reply.status == 200, reply.body
            found["find_shop", text, str(page)] = reply.body
            cursor = reply.json.get("next_cursor")
            if cursor is None:
                break
    return found


@pytest.mark.rule("M6", "M9", "M10", "G3")
def test_several_segments_answer_byte_by_byte_as_one_when_built_followed_and_merged(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shops = _shops(150)
    one, several = locations("one"), locations("several")
    # Later lines are followed after the build.
    catalogues = {
        location: write_catalogue_directory(location.folder / "catalogue", shops=shops) for location in (one, several)
    }
    rounds = [
        [upsert("shops", {**line, "name": f"{line['name']} Kestrel"}, 2) for line in shops[start::5]]
        + [delete("shops", f"s{number:03}", 3) for number in range(start, 150, 30)]
        for start in range(4)
    ]
    followed = {}
    for location, most in ((one, TypeaheadStore.segment_texts), (several, _SMALL)):
        monkeypatch.setattr(TypeaheadStore, "segment_texts", most)
        catalogue = catalogues[location]
        location.build(catalogue)
        built = _all_answers(location)
        with location.opened() as sink:
            before = _covering(sink)
            for lines in rounds:
                _follow(sink, location, catalogue, lines)
            # Until a merge in the background has replaced a segment of the build, at the latest after a minute or so.
            for version in range(9, 209):
                _follow(sink, location, catalogue, [upsert("shops", {**shops[1], "name": "Wren"}, version)])
                after = _covering(sink)
                if {use.name for use in before} - {use.name for use in after}:
                    break
            else:
                pytest.fail("no merge has replaced a segment of the build")
        if location is one:
            assert len(before) == 1
        else:
            assert len(before) > 5
            assert max(before.values()) < 2 * _SMALL
        followed[location] = built, _all_answers(location)
    assert followed[several] == followed[one]


def _follow(sink: Sink, location: Location, catalogue: Path, lines: list[dict[str, Any]]) -> None:
    with (catalogue / CHANGES).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
    changes = NdjsonCatalogue(catalogue).changes()
    Following(sink, location.states(), changes, FollowOptions(once=True)).run(Event())
    time.sleep(0.2)  # a background merge may end


@pytest.mark.rule("G1", "G2")
@pytest.mark.parametrize("written", [1, 4])
def test_a_build_that_is_killed_among_its_segments_changes_nothing_and_the_next_one_is_right(
    locations: Locations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    first = write_catalogue_directory(tmp_path / "first", shops=_shops(60))
    second = write_catalogue_directory(tmp_path / "second", shops=_shops(150))
    right, location = locations("right"), locations("killed")
    right.build(second)
    location.build(first)
    before = _all_answers(location)
    job = [sys.executable, "-c", _KILLED, str(_SMALL), str(written), *location.words(), str(second)]
    assert subprocess.run(job, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    assert _all_answers(location) == before
    monkeypatch.setattr(TypeaheadStore, "segment_texts", _SMALL)
    location.build(second)
    assert _all_answers(location) == _all_answers(right) != before
    assert location.remains() == []
