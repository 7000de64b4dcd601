"""What the indexer reports to `shop-directory status`: generations, follower, refused rows, marks, gaps, disk."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from indexer.commands.parts import counted, held, sink_of
from indexer.records.problems import numbered
from shop_directory.settings.commands import ExitCode, loaded
from shop_directory.status import Asked, Section, ago, disk

if TYPE_CHECKING:
    from index_mappings.generations import FollowerStatus, Operations, Stamp
    from indexer.sinks.protocol import Sink
    from indexer.state.state import States

_REFUSED_DAYS: Final = 7
_READ_BYTES: Final = 4 << 20
_REASONS: Final = 5
# A follower reports every five seconds, one that a timer starts once a day.
_SILENT_S: Final = 25 * 3_600


def sections(asked: Asked) -> Iterator[Section]:
    """The sections of the index that options and settings name."""
    from indexer.records.problems import CatalogueError
    from indexer.settings import IndexerSettings
    from indexer.sinks.failures import SinkError
    from indexer.state.state import States

    settings = loaded(IndexerSettings, engine=asked.engine, data_dir=asked.data_dir, state_dir=asked.state_dir)
    try:
        with closing(sink_of(settings)) as sink:
            yield from _of_sink(sink, States(settings.states, sink.location, make=False))
    except (SinkError, CatalogueError) as error:
        yield Section("Index", (str(error),), None, ((ExitCode.UNAVAILABLE, str(error)),))
    yield disk("Disk of the index", [settings.states, *([settings.data_dir] if settings.engine == "embedded" else [])])


def _of_sink(sink: "Sink", states: "States") -> Iterator[Section]:
    from indexer.jobs.shop_visibility import marked_shops

    live = sink.live()
    yield _index(live, sink.location)
    operations: Operations | None = None
    if live is not None and live.readable:
        operations = sink.reader(live.generation).operations()
    yield _follower(None if operations is None else operations.follower)
    missing = None if operations is None else operations.missing
    if missing is None:
        yield Section("Missing changes", ("none",), None)
    else:
        yield Section("Missing changes", (str(missing),), asdict(missing), ((ExitCode.INCOMPLETE, str(missing)),))
    yield _refused(states.dead_letters, None if live is None else states.skipped(live.generation))
    marked = sorted(marked_shops(states))
    yield Section("Hidden by mark", (f"{len(marked):,}" if marked else "none",), marked)


def _index(live: "Stamp | None", location: str) -> Section:
    if live is None:
        text = f"nothing is live in {location}: build by shop-directory index build"
        return Section("Index", (text,), None, ((ExitCode.BAD_INPUT, text),))
    age = _seconds_since(live.built_at)
    problem = f"generation {live.generation} has another schema version: build again"
    return Section(
        "Index",
        (f"{live.generation}, {ago(age)} old, in {location}", held(live.counts)),
        {
            "generation": live.generation,
            "built_at": live.built_at,
            "age_seconds": age,
            "counts": dict(live.counts),
            "location": location,
        },
        () if live.readable else ((ExitCode.BAD_INPUT, problem),),
    )


def _follower(found: "FollowerStatus | None") -> Section:
    if found is None:
        return Section("Follower", ("none has reported for this generation",), None)
    silent = _seconds_since(found.told_at)
    behind = "nothing waits" if found.waiting == 0 else f"{'some' if found.waiting is None else found.waiting} wait"
    facts = {**asdict(found), "silent_seconds": silent}
    problem = (ExitCode.UNAVAILABLE, f"no follower has reported for {ago(silent)}")
    lines = (f"{found.source}, {behind}, reported {ago(silent)} ago",)
    return Section("Follower", lines, facts, (problem,) if silent > _SILENT_S else ())


def _refused(path: Path, skipped: Mapping[str, Any] | None) -> Section:
    """The reasons of refused rows, in the end of their file, and of skipped records; no value is read (V1)."""
    since = (datetime.now(UTC) - timedelta(days=_REFUSED_DAYS)).isoformat()
    reasons: Counter[str] = Counter()
    with suppress(FileNotFoundError), path.open("rb") as file:
        cut = file.seek(0, os.SEEK_END) - _READ_BYTES
        file.seek(max(0, cut))
        for line in file.readlines()[1 if cut > 0 else 0 :]:
            with suppress(ValueError, KeyError, TypeError):
                letter = json.loads(line)
                reasons[str(letter["reason"])] += str(letter["at"]) >= since
    refused = _most_common(reasons)
    facts = {"days": _REFUSED_DAYS, "count": reasons.total(), "reasons": refused, "skipped": None}
    lines, problems = [f"none in {_REFUSED_DAYS} days"], list[str]()
    if refused:
        problems.append(f"{reasons.total():,} rows were refused in {_REFUSED_DAYS} days")
        lines = [f"{problems[-1]}: {counted(refused)}", f"see {path}"]
    if skipped is not None:
        left_out = _most_common(Counter(skipped["reasons"]))
        facts["skipped"] = {"records": skipped["records"], "reasons": left_out}
        if skipped["records"]:
            problems.append(f"the build skipped {numbered(skipped['records'], 'bad record')}")
            lines.append(f"{problems[-1]}: {counted(left_out)}")
    return Section("Refused rows", tuple(lines), facts, tuple((ExitCode.BAD_INPUT, text) for text in problems))


def _most_common(reasons: Counter[str]) -> dict[str, int]:
    return dict((+reasons).most_common(_REASONS))


def _seconds_since(time: str) -> float:
    return max(0.0, round((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds(), 1))
