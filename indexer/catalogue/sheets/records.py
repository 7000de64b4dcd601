"""Makes the file of one kind of records of a catalogue from a sheet.

A bad row is reported by its line, field and value: the operator reads a file of his own (V1). A cell in another form,
such as a country's name, is converted to the form of the catalogue.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from index_mappings.hosts import has_dot, reduce_host
from indexer.catalogue.new_catalogue import catalogue_file
from indexer.catalogue.sheets import cells
from indexer.catalogue.sheets.cells import UnreadableError
from indexer.catalogue.sheets.columns import FIELDS, NAMES, Columns, columns_of, position_of, stated_values
from indexer.catalogue.sheets.files import SheetFile
from indexer.catalogue.sheets.values import VISIBILITIES, Column, Faults
from indexer.catalogue.sheets.workbooks.rows import Row
from indexer.records.entities import decoded
from indexer.records.problems import CatalogueError, ProblemLog, RefusedRecordError, numbered
from indexer.records.related import RECORDS
from indexer.records.shop import NO_ORDER, Record, ShopRecord, is_public, validated
from indexer.sources.ndjson import NdjsonCatalogue

_MAX_ID: Final = 64
# The field without which a record is valid for ever.
_END: Final = "valid_until"
_NO_ID: Final = re.compile(r"[^A-Za-z0-9-]")
_NO_CURRENCY: Final = "needs a currency, in the cell (12.50 EUR), in a column (--map COLUMN=currency) or by --currency"


class _Fault(NamedTuple):
    """What is wrong with a row, and the texts that are; `field` is a path, or None for the row as a whole."""

    field: str | None
    reason: str
    values: tuple[str, ...] = ()

    @property
    def of(self) -> str:
        """The field of the record that is wrong or has a part that is."""
        return (self.field or "").partition(".")[0]


class _BadRowError(Exception):
    def __init__(self, *faults: _Fault) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


class _HiddenLaterError(Exception):
    """A row hides a shop that an earlier one shows: the sheet is read again, without the earlier one."""


@dataclass(slots=True)
class Imported:
    """What became of the rows of a sheet.

    `not_public` are the shops that are written and not public, or the other records that are therefore not written.
    `partly` of the bad rows are bad by fields alone that a record may lack; `dropped` counts such fields, which were
    left out of written records. `faults` has the faults of both.
    """

    faults: Faults
    written: int = 0
    not_public: int = 0
    bad_rows: int = 0
    partly: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


class SheetRecords:
    """The records of one kind of a sheet; `kind` is one of FIELDS."""

    def __init__(
        self,
        file: SheetFile,
        kind: str = "shops",
        *,
        stated: Sequence[str] = (),
        values: Sequence[str] = (),
        category: str | None = None,
        currency: str | None = None,
    ) -> None:
        """Read the header; CatalogueError if there is none, or no column for a field that every record needs.

        `stated` has `COLUMN=FIELD` each, `values` `COLUMN:VALUE=VISIBILITY` each. Shops without a category get
        `category`, and amounts without a currency `currency`.
        """
        self._file, self._kind, self._category, self._currency = file, kind, category, currency
        self._model = RECORDS[kind]
        self._hidden: Mapping[str, str] = {}
        # The lines of the rows that hide a shop, by key, and whether one of them came after a row that shows it.
        self._hiding: dict[str, int] = {}
        self._hidden_later = False
        self._header = next((row for _, row in file.rows()), [])
        if not self._header:
            raise CatalogueError(f"{file.path} is empty: its first line must name the columns")
        self._digest: int | None = None
        names = [decoded(cell).strip() for cell in self._header]
        column, self._visibilities = stated_values(values, names)
        implied = () if column is None else (f"{column}=visibility",)
        self.columns: Columns = columns_of(names, (*implied, *stated), kind)
        if column is not None:
            position = position_of(column, names)
            others = [pair for pair in stated if not pair.endswith("=visibility")]
            left_out = position in {position_of(pair.rpartition("=")[0], names) for pair in others}
            if left_out or self.columns.positions["visibility"] != position:
                raise CatalogueError(f"--map-value is for the visibility, and --map says that {column!r} is not that")
        limits = any(FIELDS[kind][name].limits for name in self.columns.positions)
        self._least_cells = max(at for at, name in enumerate(names, 1) if name) if limits else 0

    def write(self, directory: Path, done: Imported, *, skip_invalid: bool = False) -> None:
        """Write the records into the directory's file of the kind, in place of those in it, and count them in `done`.

        With `skip_invalid` bad rows are left out, and of a row that is bad by fields alone that a record may lack only
        these fields. Raises CatalogueError, and changes nothing, if there are bad rows without it, if records that
        their owner has suspended might be published, or if there is no record.
        """
        before = deepcopy(done)
        try:
            self._write(directory, done, skip_invalid=skip_invalid)
        except _HiddenLaterError:
            for one in fields(done):
                setattr(done, one.name, getattr(before, one.name))
            self._write(directory, done, skip_invalid=skip_invalid)

    def _write(self, directory: Path, done: Imported, *, skip_invalid: bool) -> None:
        named = self._examined(skip_invalid=skip_invalid)
        shops = {} if self._kind == "shops" else _shop_ids(directory, named)
        if self._kind == "shops" and "visibility" not in self.columns.positions:
            self._hidden = _hidden_shops(directory)
        written = 0
        with catalogue_file(directory, self._kind) as output:
            for record in self._records(shops, done, skip_invalid=skip_invalid):
                output.write(f"{record.model_dump_json(exclude_none=True)}\n")
                written += 1
            if done.bad_rows and not skip_invalid:
                kept = f" (it keeps {done.partly:,} of them without the wrong fields)" if done.partly else ""
                them = "it" if done.bad_rows == 1 else "them"
                raise CatalogueError(
                    f"{numbered(done.bad_rows, 'bad row')}: correct {them}, or leave {them} out by --skip-invalid{kept}"
                )
            if not written:
                raise CatalogueError(f"the file has no row that is one of the {NAMES[self._kind]}s")
        done.written = written

    def _records(self, shops: Mapping[str, str], done: Imported, *, skip_invalid: bool) -> Iterator[Record]:
        lines: dict[str, int] = {}
        for line, row in self._rows():
            try:
                record, dropped = self._record(row, shops, skip_invalid=skip_invalid)
                if record is None:
                    done.not_public += 1
                    continue
                self._refuse_repeated(record, line, lines)
            except _BadRowError as error:
                dropped = error.faults
                done.bad_rows += 1
                done.partly += all(self._may_lack(fault.of) for fault in dropped)
            else:
                done.dropped.update(list(dict.fromkeys(fault.of for fault in dropped)))
                done.not_public += isinstance(record, ShopRecord) and not is_public(record)
                yield record
            for fault in dropped:
                done.faults.note(line, fault.field, fault.reason, fault.values)
        if self._hidden_later:
            self._hidden_later = False
            raise _HiddenLaterError

    def _examined(self, *, skip_invalid: bool) -> Collection[str]:
        """Read the sheet once; returns the shops that its rows name.

        Raises CatalogueError if records might be published that their owner has suspended. That is a column that nobody
        mapped and that looks like a status, or, unless such rows are left out, an unknown visibility.
        """
        positions = self.columns.positions
        visibility, shop = positions.get("visibility"), positions.get("shop_id", -1)
        unused = [one for one in self.columns.unused_positions() if one not in self.columns.settled]
        chosen = unused if visibility is None else [visibility, *unused]
        columns = {position: Column(name=self.columns.header[position]) for position in chosen}
        shops = set[str]()
        for line, row in self._rows():
            for position, column in columns.items():
                if position < len(row) and (text := decoded(row[position]).strip()):
                    column.add(text, line)
            if 0 <= shop < len(row):
                shops.add(decoded(row[shop]).strip())
        faults = []
        if _END in FIELDS[self._kind] and _END not in positions:
            faults += [column.dates_as_text(self._kind, _END) for column in columns.values() if column.holds_dates]
        for position, column in columns.items():
            if position == visibility:
                unknown = column.unknown(self._visibilities)
                if unknown and not skip_invalid:
                    faults.append(column.unknown_as_text(unknown))
            elif column.is_status:
                read_from = None if visibility is None else self.columns.header[visibility]
                faults.append(column.status_as_text(self._kind, read_from))
        if faults:
            raise CatalogueError("; ".join(faults))
        return shops

    def _rows(self) -> Iterator[Row]:
        """The rows below the header; CatalogueError if the file was read before and held others then.

        Rows that nobody has examined for a status could publish suspended records (V1).
        """
        rows = self._file.rows()
        is_same = next((row for _, row in rows), []) == self._header
        digest = 0
        for line, row in rows if is_same else ():
            digest = hash((digest, *row))
            yield line, row
        if not is_same or self._digest not in {None, digest}:
            raise CatalogueError(f"{self._file.path} has changed while it was read: try again")
        self._digest = digest

    def _record(
        self, row: Sequence[str], shops: Mapping[str, str], *, skip_invalid: bool
    ) -> tuple[Record | None, Sequence[_Fault]]:
        """The record of a row, None if its owner has suspended it, and the faults of the fields that it lacks."""
        if any(more := [cell.strip() for cell in row[len(self.columns.header) :]]):
            reason = "the row is longer than the header: quote cells that hold the delimiter"
            raise _BadRowError(_Fault(None, reason, (", ".join(more),)))
        if len(row) < self._least_cells:
            reason = "the row is shorter than the header, so that any of its cells may be of another column"
            raise _BadRowError(_Fault(None, f"{reason}: write empty cells as well, or give the workbook itself"))
        fields, faults = self._fields(row, shops)
        hidden = self._kind != "shops" and fields.pop("visibility", VISIBILITIES[0]) != VISIBILITIES[0]
        try:
            record = validated(self._model, fields, lenient=False)
        except RefusedRecordError as error:
            read = {fault.of for fault in faults}
            faults += [fault for fault in self._refused(error, row) if fault.of not in read]
        if hidden:
            return None, ()
        if not faults:
            return record, ()
        if not skip_invalid or not all(self._may_lack(fault.of) for fault in faults):
            raise _BadRowError(*faults)
        lacking = {name: value for name, value in fields.items() if name not in {fault.of for fault in faults}}
        try:
            return validated(self._model, lacking, lenient=False), faults
        except RefusedRecordError as error:
            raise _BadRowError(*faults, *self._refused(error, row)) from None

    def _may_lack(self, name: str) -> bool:
        """Whether a record without the field says no more than the row does."""
        known = self._model.model_fields.get(name)
        if known is None:
            return name == "currency"
        return not known.is_required() and not FIELDS[self._kind][name].limits

    def _fields(self, row: Sequence[str], shops: Mapping[str, str]) -> tuple[dict[str, Any], list[_Fault]]:
        """The fields of a row as a line of the catalogue, and the faults of those that can't be read."""
        stated = {
            name: text
            for name, position in self.columns.positions.items()
            if position < len(row) and (text := _text_of(name, row[position]))
        }
        if self._category:
            stated.setdefault("categories", self._category)
        if "discount_kind" in stated:
            stated.setdefault("discount", "")
        fields: dict[str, Any] = {}
        faults: list[_Fault] = []
        for name, text in stated.items():
            try:
                if name == "discount":
                    fields[name] = cells.discount(text, stated.get("discount_kind", ""))
                elif name == "shop_id":
                    fields[name] = _shop_of(text, shops)
                elif name == "visibility":
                    fields[name] = self._visibility_of(text)
                elif name != "discount_kind":
                    fields[name] = FIELDS[self._kind][name].read(text)
            except UnreadableError as error:
                faults.append(_Fault(name, error.reason, error.values))
        # What is said of all amounts does not hold for a row whose own currency can't be read.
        currency = self._currency if not any(fault.of == "currency" for fault in faults) else None
        faults += self._set_currency(fields, stated, currency)
        faults += self._set_defaults(fields, stated, row)
        return fields, faults

    def _visibility_of(self, text: str) -> str:
        said = text.casefold()
        known = self._visibilities.get(said, said)
        if known not in VISIBILITIES:
            raise UnreadableError("is none that is known", text)
        return known

    @staticmethod
    def _set_currency(fields: dict[str, Any], stated: Mapping[str, str], of_all: str | None) -> Iterator[_Fault]:
        """Give amounts that state no currency that of the row or of all.

        Those without one are faults, and those of another one than the row states.
        """
        of_row = fields.pop("currency", None)
        currency = of_row or of_all
        for name, value in list(fields.items()):
            if not isinstance(value, dict) or "currency" not in value:
                continue
            if value["currency"] is None and currency is not None:
                value["currency"] = currency
            elif value["currency"] is None:
                del fields[name]
                yield _Fault(name, _NO_CURRENCY, (stated[name],))
            elif of_row not in {None, value["currency"]}:
                del fields[name]
                yield _Fault(name, f"has another currency than its row ({of_row})", (stated[name],))

    def _set_defaults(self, fields: dict[str, Any], stated: Mapping[str, str], row: Sequence[str]) -> Iterator[_Fault]:
        """Add what a row need not state."""
        if self._kind == "coupons":
            fields.setdefault("verification_status", "unverified")
        if "id" not in stated and "id" in self._model.model_fields and (made := self._made_id(fields)):
            fields["id"] = made
        if "visibility" not in self.columns.positions:
            known = (fields.get("id", ""), reduce_host(fields.get("domain", "")) or "")
            before = (self._hidden[name] for name in known if name in self._hidden)
            fields["visibility"] = next(before, VISIBILITIES[0])
        elif "visibility" not in stated and "" in self._visibilities:
            fields["visibility"] = self._visibilities[""]
        elif "visibility" not in stated:
            yield self._fault("visibility", "is missing", row)

    def _made_id(self, fields: Mapping[str, Any]) -> str | None:
        if self._kind == "shops":
            return id_of(fields["domain"]) if "domain" in fields else None
        within = fields.get("code") or fields.get("url") or fields.get("title")
        return id_within(fields["shop_id"], within) if within and "shop_id" in fields else None

    def _refused(self, error: RefusedRecordError, row: Sequence[str]) -> list[_Fault]:
        # Where ids are made, what they are made from is the fault, without the id that it lacks.
        faults = [fault for fault in error.faults if fault[0] != "id" or "id" in self.columns.positions]
        return [self._fault(name, reason, row) for name, reason in faults or error.faults]

    def _fault(self, name: str | None, reason: str, row: Sequence[str]) -> _Fault:
        """What is wrong with a field of a row, with what a sheet may hold instead."""
        fault = _Fault(name, reason)
        position = self.columns.positions.get(fault.of)
        text = "" if position is None or position >= len(row) else row[position].strip()
        if len(text.splitlines()) > 1:
            reason = f"{reason}: the cell has a line break"
        elif name == "categories" and not self._category:
            column = "" if name in self.columns.positions else "--map COLUMN=categories names their column, "
            reason = f"{reason}; {column}--category gives one to rows without any"
        elif name == "visibility" and not text and position is not None:
            option = shlex.quote(f"{self.columns.header[position]}:=under_review")
            reason = f"{reason}; --map-value {option} hides such rows"
        return _Fault(name, reason, (text,) if text else ())

    def _refuse_repeated(self, record: Record, line: int, lines: dict[str, int]) -> None:
        """Refuse a key that an earlier row has; `lines` are those of the keys. The newer of two versions is used.

        Without versions, a row that hides a shop is used instead of one that shows it, whichever comes first (V1).
        """
        if record.order != NO_ORDER:
            return
        is_shown = not isinstance(record, ShopRecord) or is_public(record)
        hiding = self._hiding.get(record.key) if is_shown else self._hiding.setdefault(record.key, line)
        first = hiding if is_shown and hiding else lines.setdefault(record.key, line)
        if first != line and hiding == line:
            self._hidden_later = True
        elif first != line:
            name = record.key_fields[0]
            made = {"shops": "domain", "coupons": "shop and code", "offers": "shop and URL or title"}.get(self._kind)
            suffix = f", made from the same {made}" if name == "id" and name not in self.columns.positions else ""
            used = ", which is not public and is used instead" if is_shown and hiding else ""
            reason = f"is already that of another row{suffix}{used}"
            raise _BadRowError(_Fault(name, reason, (f"{record.key} of line {first}",)))


def _text_of(name: str, cell: str) -> str:
    """The text of a cell of a field; entities are decoded before it is split, but in a code, where none is certain."""
    return (cell if name == "code" else decoded(cell)).strip()


def _shop_of(text: str, shops: Mapping[str, str]) -> str:
    if text in shops:
        return shops[text]
    raise UnreadableError("is no id and no domain of a shop of the catalogue", text)


def _shop_ids(directory: Path, references: Collection[str]) -> Mapping[str, str]:
    """The ids of the shops of a catalogue that are named by their ids or domains, by these references (R1).

    Of several shops of one domain the one that a build would give it is meant.
    """
    of_ids = {text for text in references if not has_dot(text)}
    hosts = {text: reduce_host(text) for text in references if has_dot(text)}
    wanted = set(hosts.values())
    ids = dict[str, str]()
    owners = dict[str | None, ShopRecord]()
    for shop in _shops_of(directory):
        if shop.id in of_ids:
            ids[shop.id] = shop.id
        if shop.domain in wanted:
            owners[shop.domain] = min(shop, owners.get(shop.domain, shop), key=_preference)
    return {**ids, **{text: owners[host].id for text, host in hosts.items() if host in owners}}


def _hidden_shops(directory: Path) -> Mapping[str, str]:
    """The visibilities of the shops of a catalogue, if there is one, that are not public, by id and by domain.

    A sheet that states no visibility must not publish them (V1). A domain that a public shop has as well counts not.
    """
    if not any((directory / name).exists() for name in ("shops.ndjson", "shops.ndjson.gz")):
        return {}
    by_id, by_domain, public = dict[str, str](), dict[str, str](), set[str]()
    problems = ProblemLog()
    for shop in _shops_of(directory, problems):
        if is_public(shop):
            public.add(shop.domain)
        else:
            by_id[shop.id] = by_domain[shop.domain] = shop.visibility
    if problems.records:
        raise CatalogueError(
            f"{directory} has {problems.records:,} bad records of shops, which may be hidden ones, and the sheet states"
            " no visibility: correct them (shop-directory catalogue validate), or add a column visibility"
        )
    return {**{domain: said for domain, said in by_domain.items() if domain not in public}, **by_id}


def _shops_of(directory: Path, problems: ProblemLog | None = None) -> Iterator[ShopRecord]:
    problems = problems or ProblemLog()
    for _, shop in NdjsonCatalogue(directory, lenient=True).records("shops", problems, lambda _: None):
        yield shop


def _preference(shop: ShopRecord) -> tuple[bool, float, str]:
    return not is_public(shop), -(shop.popularity or 0), shop.id


def id_of(domain: str) -> str:
    """A shop's id from its domain, the same for every form of the domain; empty where the text is no domain."""
    host = reduce_host(domain) or ""
    made = _NO_ID.sub("_", host)
    return made if len(made) <= _MAX_ID else _shortened(made, host)


def id_within(shop_id: str, text: str) -> str:
    """The id of what a shop has once: a code, or an offer of a title."""
    whole = f"{shop_id}-{text}"
    made = _NO_ID.sub("_", whole)
    return made if len(made) <= _MAX_ID and _NO_ID.sub("_", text) == text else _shortened(made, whole)


def _shortened(made: str, whole: str) -> str:
    digest = hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()
    return f"{made[: _MAX_ID - len(digest) - 1]}_{digest}"
