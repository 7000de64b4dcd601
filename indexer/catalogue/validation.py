"""Checks a catalogue without building it: finds the problems that a build would report, and the records it would omit.

The records go into a state in a temporary directory, as in a build, so memory is bounded and the rules are the same.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from index_mappings.countries import WORLDWIDE
from index_mappings.forms import shop_forms
from index_mappings.ngrams import is_part_evidence
from index_mappings.text import words_of
from index_mappings.usable_codes import MAX_TERMS, code_terms
from indexer.jobs.reading import NOTED, ReadCounts, Reading, build_notes, disputed_categories, read_catalogue
from indexer.progress import Advance, stage
from indexer.projection import project_coupon
from indexer.records.faults import RefusedRecordError
from indexer.records.problems import CatalogueError, Problem, ProblemLog, shown
from indexer.records.related import (
    RELATED_RECORDS,
    CategoryNamesRecord,
    CouponRecord,
    PolicyRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records.shop import Record, ShopRecord
from indexer.records.urls import url_of_shop
from indexer.sinks.dead_letters import DeadLetters
from indexer.sources.changes import read_change
from indexer.sources.lines import parsed
from indexer.sources.ndjson import NdjsonCatalogue, lines_of
from indexer.sources.protocol import NumberedRecord
from indexer.state.state import State

# Many more forms than honest shops have: 75 is the most of the 3,295 development shops.
MANY_FORMS: Final = 200
# Names with fewer characters than this have few forms, which need not be counted.
_FEW_CHARACTERS: Final = 40
_CHANGES: Final = "changes"
# The kinds of trust facts whose value is a list.
_LISTS: Final = frozenset({"payment_methods"})
# The neighbouring words of a query that can be a whole name (M5).
_MAX_RUN: Final = 6


@dataclass(frozen=True, slots=True)
class Validated:
    """The result of a validation.

    `records` are the valid ones by kind, changes among them; empty where the catalogue could not be read to its end. A
    build would publish `public_shops`. `notes` name records it would omit, and valid values that are probably mistakes.
    """

    records: Mapping[str, int]
    public_shops: int
    bad_records: int
    problems: int
    notes: tuple[str, ...]


def validate(
    path: Path,
    report: Callable[[Problem], None],
    *,
    changes: Path | None = None,
    lenient: bool = False,
    logo_hosts: Sequence[str] = (),
) -> Validated:
    """Read a catalogue, and report every problem when it is found.

    Raises CatalogueError if the path has no catalogue; other problems within a catalogue are reported instead.
    Arguments as for NdjsonCatalogue and BuildOptions.
    """
    source = _NotingCatalogue(path, lenient=lenient, changes=changes)
    if changes is not None and not changes.is_file():
        raise CatalogueError(f"there is no file of changes at {changes}")
    problems = ProblemLog(report=report, shows_values=True)
    records: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    public = 0
    try:
        counts, notes = _read(source, problems, logo_hosts)
        records, public = dict(counts.read), counts.public
        if not public:
            reason = "holds no shop that would be public; --allow-empty builds it nevertheless"
            problems.add(Problem(source.name("shops"), 0, None, reason))
        change_file = source.changes()
        if change_file is not None and change_file.path.is_file():
            records[_CHANGES] = _count_changes(change_file.path, problems, lenient=lenient)
    except CatalogueError as error:
        problems.add(Problem(path.name, 0, None, str(error)))
    return Validated(records, public, problems.records, problems.count, notes)


class _NotingCatalogue(NdjsonCatalogue):
    """A catalogue that notes which of its valid records are hardly meant as they are."""

    def __init__(self, path: Path, *, lenient: bool, changes: Path | None) -> None:
        super().__init__(path, lenient=lenient, changes=changes)
        self._notes: dict[str, list[str]] = {}
        self._unlisted: Counter[str] = Counter()

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        """Read the records of a type, and note which of them are doubtful."""
        notes = self._notes.setdefault(kind, [])
        for line, record in super().records(kind, problems, advance):
            for doubt in _doubts(record):
                if len(notes) < NOTED:
                    notes.append(f"{self.name(kind)}:{line}: {doubt}")
                else:
                    self._unlisted[kind] += 1
            yield line, record

    @property
    def notes(self) -> Iterator[str]:
        """The first notes of each file, and the number of the others."""
        for kind, notes in self._notes.items():
            yield from notes
            if unlisted := self._unlisted[kind]:
                yield f"{self.name(kind)}: {unlisted:,} more records or names like these"


def _doubts(record: Record) -> Iterator[str]:
    """What is valid in a record and hardly meant. Values are shown of categories only, which belong to no shop (V1)."""
    match record:
        case CouponRecord(valid_from=datetime() as start, valid_until=datetime() as end) if start > end:
            yield "valid_from is after valid_until, so the code is never valid"
        case ShippingRecord(destinations=destinations, delivery_time=time):
            if destinations == ():
                yield "destinations is an empty list, which counts as left out: nothing says where the shop ships"
            if time is not None and (time.min_days or 0) > (time.max_days if time.max_days is not None else math.inf):
                yield "delivery_time.min_days is greater than max_days"
        case PolicyRecord(country=str(country), countries=named) if named and not {country, WORLDWIDE} & {*named}:
            yield "countries lacks the country that the record is for"
        case TrustRecord(kind=kind, value=str()) if kind in _LISTS:
            yield f"value of {kind} is one text, and a list is meant"
        case TrustRecord(kind=kind, value=tuple()) if kind not in _LISTS:
            yield f"value of {kind} is a list, and one text is meant"
        case CategoryNamesRecord(other_names=names, stated_synonyms=synonyms):
            yield from (
                f"no words find the name or synonym {shown(name)}"
                for _, name in (*names, *synonyms)
                if not _can_be_found(name)
            )


def _can_be_found(name: str) -> bool:
    """Whether a category is found by a name: by one of its words, or by the whole of it (M5)."""
    words = words_of(name)
    return any(is_part_evidence(word) for word in words) or 1 <= len(words) <= _MAX_RUN


def _read(
    source: _NotingCatalogue, problems: ProblemLog, logo_hosts: Sequence[str]
) -> tuple[ReadCounts, tuple[str, ...]]:
    with TemporaryDirectory(prefix="shop-directory-") as folder:
        letters = DeadLetters(Path(folder) / "none.ndjson")  # unused, as no changes are read here
        reading = Reading(source, None, None, letters, skip_invalid=True)
        with State.create(Path(folder) / "state.sqlite") as state:
            counts = read_catalogue(reading, state, problems)
            left_out = [
                f"{source.name(kind)}: {number:,} records belong to no public shop and would be left out"
                for kind, number in counts.left_out.items()
                if number
            ]
            unknown = [
                f"{source.name(kind)}:{line}: shop_id is the id of no valid record of {source.name('shops')}"
                for kind in RELATED_RECORDS
                if kind in source.kinds()
                for line in state.public.without_shop(kind, NOTED)
            ]
            shops = source.name("shops")
            doubtful = _doubtful_shops(shops, state, logo_hosts)
            built = build_notes(shops, counts, disputed_categories(state))
            return counts, (*left_out, *unknown, *doubtful, *built, *source.notes)


def _doubtful_shops(file: str, state: State, logo_hosts: Sequence[str]) -> list[str]:
    """Notes on public shops with more forms or code terms than searches can take, and on logos that are left out."""
    many: list[str] = []
    logos: list[str] = []
    codes: list[str] = []
    for line, shop in state.public.shops_by_line():
        if (count := _forms_of(shop)) > MANY_FORMS:
            many.append(
                f"{file}:{line}: name and aliases have {count:,} forms, by which the shop is found; over {MANY_FORMS} "
                "make searches slower and the index larger: leave out aliases that nobody types"
            )
        if shop.logo is not None and url_of_shop(shop.logo, shop.domain, logo_hosts) is None:
            logos.append(
                f"{file}:{line}: logo is neither on the shop's domain nor on a host of SHOP_DIRECTORY_LOGO_HOSTS, and "
                "would be left out"
            )
        if not code_terms(project_coupon(coupon, shop) for coupon in state.public.coupons_of(shop.id)).exact:
            codes.append(
                f"{file}:{line}: the shop's coupons have more times and countries than {MAX_TERMS:,} terms can state: "
                "find_shop with has_code or verified_code counts some of them for a shorter time, or not; give fewer "
                "coupons their own times, countries and blocked_countries"
            )
    return [*many[:NOTED], *logos[:NOTED], *codes[:NOTED]]


def _forms_of(shop: ShopRecord) -> int:
    """The number of forms by which a shop is found; 0 where its names are so short that there are few."""
    if sum(map(len, (shop.name, *shop.aliases))) < _FEW_CHARACTERS:
        return 0
    forms = shop_forms(shop.name, shop.aliases, shop.domain)
    return len({*forms.full, *forms.keys, *forms.words, *forms.infixes})


def _count_changes(path: Path, problems: ProblemLog, *, lenient: bool) -> int:
    """The number of changes that can be applied; the others are reported."""
    good = 0
    with stage("Reading changes", path.stat().st_size, "bytes") as advance:
        for line in lines_of(path, advance):
            try:
                read_change(line, path.name, lenient=lenient)
            except RefusedRecordError as error:
                change = None
                with suppress(RefusedRecordError):
                    change = parsed(line)
                problems.add_refused(path.name, line.number, error, change)
            else:
                good += 1
    return good
