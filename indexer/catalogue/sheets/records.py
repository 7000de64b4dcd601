"""Makes the file of one kind of records of a catalogue from a sheet.

A bad row is reported by its line, field and value: the operator reads a file of his own (V1). A cell in another form,
such as a country's name, is converted to the form of the catalogue.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from index_mappings.hosts import has_dot, reduce_host
from indexer.catalogue.new_catalogue import catalogue_file
from indexer.catalogue.sheets import cells, terms
from indexer.catalogue.sheets.cells import WORDS, plain
from indexer.catalogue.sheets.columns import (
    AMOUNTS,
    DATES,
    FIELDS,
    NAMES,
    Columns,
    columns_of,
    position_of,
    stated_values,
)
from indexer.catalogue.sheets.examined import examine
from indexer.catalogue.sheets.files import SheetFile
from indexer.catalogue.sheets.joined import Repeated, joined
from indexer.catalogue.sheets.stated import Stated, read_mapping
from indexer.catalogue.sheets.values import VISIBILITIES, Faults
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.records.entities import decoded, ends_in_entity
from indexer.records.faults import RefusedRecordError, UnreadableError
from indexer.records.hiding import hiding_of
from indexer.records.problems import CatalogueError, ProblemLog, numbered
from indexer.records.related import RECORDS
from indexer.records.shop import NO_ORDER, Record, ShopRecord, is_public, validated
from indexer.sources.ndjson import NdjsonCatalogue

_MAX_ID: Final = 64
# Fields of which a cell is never read as blank: a name may be a word such as null.
_AS_THEY_ARE: Final = frozenset({"id", "shop_id", "name", "domain", "visibility", "fees"})
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
    `partly` of the bad rows lack only fields that a record may lack; `dropped` counts those of written records, and
    `faults` has both. `notes` say how columns were read. `joined` rows only add to lists of an earlier row's record.
    """

    faults: Faults
    written: int = 0
    not_public: int = 0
    bad_rows: int = 0
    partly: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    joined: int = 0


class SheetRecords:
    """The records of one kind of a sheet, and what became of its rows; `kind` is one of FIELDS."""

    def __init__(
        self, file: SheetFile, kind: str = "shops", *, stated: Stated | None = None, mapping: Path | None = None
    ) -> None:
        """Read the header; CatalogueError if there is none, or no column for a field that every record needs.

        `mapping` is a file that states what `stated` does not.
        """
        self._file, self._kind = file, kind
        self._model = RECORDS[kind]
        self.done = Imported(Faults(file.path.name))
        self._skips_invalid = False
        # The ids of the shops that the rows name, and by id and domain the visibilities of hidden ones.
        self._shops: Mapping[str, str] = {}
        self._hidden: Mapping[str, str] = {}
        self._orders: Mapping[str, str] = {}
        # The lines of the rows that hide a shop, by key, and whether one of them came after a row that shows it.
        self._hiding: dict[str, int] = {}
        # The same of bad rows, by id, or by domain of rows without one.
        self._unreadable: dict[str, int] = {}
        self._hidden_later = False
        # The lines of the keys of other records that are written, and of those of rows that are not public.
        self._lines: dict[str, int] = {}
        self._suspended: dict[str, int] = {}
        self._header = next((row for _, row in file.rows()), [])
        if not self._header:
            raise CatalogueError(f"{file.path} is empty: its first line must name the columns")
        self._digest: int | None = None
        names = [decoded(cell).strip() for cell in self._header]
        options = stated or Stated()
        self.stated: Stated = options if mapping is None else read_mapping(mapping, kind, options, names)
        column, self.visibilities = stated_values(self.stated.values, names)
        implied = () if column is None else (f"{column}=visibility",)
        self.columns: Columns = columns_of(
            names, (*implied, *self.stated.columns), kind, ignored=self.stated.ignored, constants=self.stated.constants
        )
        self._refuse_constants()
        if column is not None:
            position = position_of(column, names)
            others = [pair for pair in self.stated.columns if not pair.endswith("=visibility")]
            left_out = position in {position_of(pair.rpartition("=")[0], names) for pair in others}
            if left_out or self.columns.positions["visibility"] != position:
                raise CatalogueError(f"--map-value is for the visibility, and --map says that {column!r} is not that")
        limits = any(FIELDS[kind][name].limits for name in self.columns.positions)
        self._least_cells = max(at for at, name in enumerate(names, 1) if name) if limits else 0

    def _refuse_constants(self) -> None:
        """Raise CatalogueError for a constant that can't be read, once and not for each row; shops are found later."""
        constants = {name: text for name, text in self.stated.constants.items() if name != "shop_id"}
        if "discount" not in constants:
            constants.pop("discount_kind", None)
        for name, text in constants.items():
            try:
                self._read(name, constants)
            except UnreadableError as error:
                raise CatalogueError(f"--set {name}={text}: it {error.reason}") from None

    def write(self, directory: Path, *, skip_invalid: bool = False) -> None:
        """Write the records into the directory's file of the kind, in place of those in it, and count them in `done`.

        With `skip_invalid` bad rows are left out, and of a row that is bad by fields alone that a record may lack only
        these fields. Raises CatalogueError, and changes nothing, if there are bad rows without it, if records that
        their owner has suspended might be published, or if there is no record.
        """
        self._skips_invalid = skip_invalid
        try:
            self._write(directory)
        except _HiddenLaterError:
            self._write(directory)

    def _write(self, directory: Path) -> None:
        done = self.done = Imported(Faults(self._file.path.name))
        examined = examine(
            self._rows(), self.columns, self.stated.dates, self.visibilities, lenient=self._skips_invalid
        )
        self._orders, done.notes = examined.orders, examined.notes
        if self._kind != "shops":
            self._shops = _shop_ids(directory, examined.shops, by_name=self.stated.by_name)
            constant = self.stated.constants.get("shop_id")
            if constant is not None and constant not in self._shops:
                raise CatalogueError(f"--set shop_id={constant}: it {self._no_shop(constant)}")
        elif "visibility" not in self.columns.positions:
            self._hidden = _hidden_shops(directory)
        written = 0
        with catalogue_file(directory, self._kind) as output:
            for record in self._records(examined.repeated):
                output.write(f"{record.model_dump_json(exclude_none=True)}\n")
                written += 1
            if done.bad_rows and not self._skips_invalid:
                kept = f" (it keeps {done.partly:,} of them without the wrong fields)" if done.partly else ""
                them = "it" if done.bad_rows == 1 else "them"
                raise CatalogueError(
                    f"{numbered(done.bad_rows, 'bad row')}: correct {them}, or leave {them} out by --skip-invalid{kept}"
                )
            if not written:
                raise CatalogueError(f"the file has no row that is one of the {NAMES[self._kind]}s")
        done.written = written

    def _records(self, repeated: Repeated) -> Iterator[Record]:
        """The records of the rows; those that several rows may state come last."""
        done, self._lines, self._hidden_later = self.done, {}, False
        held: dict[str, Record] = {}
        for line, row in self._rows():
            for stated in self._statements(row):
                try:
                    record, dropped = self._record(line, row, stated)
                    if record is None:
                        done.not_public += 1
                        continue
                    whole = joined(self._kind, held[record.key], record) if record.key in held else None
                    if whole is None:
                        self._refuse_repeated(record, line)
                except _BadRowError as error:
                    dropped = error.faults
                    done.bad_rows += 1
                    done.partly += all(self._may_lack(fault.of) for fault in dropped)
                else:
                    done.dropped.update(list(dict.fromkeys(fault.of for fault in dropped)))
                    done.joined += whole is not None
                    done.not_public += whole is None and isinstance(record, ShopRecord) and not is_public(record)
                    if whole is not None or (row in repeated and record.order == NO_ORDER):
                        held[record.key] = record if whole is None else whole
                    else:
                        yield record
                for fault in dropped:
                    done.faults.note(line, fault.field, fault.reason, fault.values)
        yield from held.values()
        if self._hidden_later:
            raise _HiddenLaterError

    def _rows(self) -> Iterator[NumberedCells]:
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

    def _statements(self, row: Sequence[str]) -> Iterable[dict[str, str]]:
        """The cells of the fields of each record that a row states."""
        stated = {
            name: text
            for name, position in self.columns.positions.items()
            if position < len(row)
            # Entities are decoded before a cell is split, but in a code, where none is certain.
            and (text := (row[position] if name == "code" else decoded(row[position])).strip())
            and (name in _AS_THEY_ARE or not cells.is_blank(text))
        }
        # A shop that was hidden stays so: _set_defaults treats rows without a visibility.
        constants = {name: text for name, text in self.stated.constants.items() if name != "visibility"}
        stated = {**constants, **stated}
        for name, text in list(stated.items()):
            tables = FIELDS[self._kind][name].nothing.split()
            is_nothing = any(plain(text) in WORDS[table] for table in tables)
            # NO is Norway where a cell is about countries.
            if (is_nothing and cells.country_code(text) is None) or (name == "min_order" and cells.is_zero(text)):
                del stated[name]
        if "discount_kind" in stated or "free_shipping" in stated:
            stated.setdefault("discount", "")
        if self._kind != "policies" or {"kind"} & (self.columns.positions.keys() | self.columns.constants.keys()):
            return [stated]
        return list(terms.statements(stated)) or [stated]

    def _record(
        self, line: int, row: Sequence[str], stated: Mapping[str, str]
    ) -> tuple[Record | None, Sequence[_Fault]]:
        """The record of a row, None if its owner has suspended it, and the faults of the fields that it lacks."""
        fields, faults = self._fields(row, stated)
        if (fault := self._fault_of_cells(row)) is not None:
            raise self._bad_row(line, stated, fields, fault)
        is_hidden = self._kind != "shops" and fields.pop("visibility", VISIBILITIES[0]) != VISIBILITIES[0]
        record, refused = self._validated(fields, row)
        if is_hidden:
            if record is not None and record.order == NO_ORDER:
                self._hidden_later |= record.key in self._lines
                self._suspended.setdefault(record.key, line)
            return None, ()
        read = {fault.of for fault in faults}
        faults += [fault for fault in refused if fault.of not in read]
        wrong = {fault.of for fault in faults}
        if wrong and not (self._skips_invalid and all(map(self._may_lack, wrong))):
            raise self._bad_row(line, stated, fields, *faults)
        if wrong:
            record, refused = self._validated({name: said for name, said in fields.items() if name not in wrong}, row)
            if record is None:
                raise self._bad_row(line, stated, fields, *faults, *refused)
        return record, faults

    def _validated(self, fields: Mapping[str, Any], row: Sequence[str]) -> tuple[Record | None, list[_Fault]]:
        try:
            return validated(self._model, fields, lenient=False), []
        except RefusedRecordError as error:
            # Where ids are made, the fault is in the fields they are made from, without the id that it lacks.
            faults = [fault for fault in error.faults if fault[0] != "id" or "id" in self.columns.positions]
            return None, [self._fault(name, reason, row) for name, reason in faults or error.faults]

    def _fault_of_cells(self, row: Sequence[str]) -> _Fault | None:
        """What is wrong with a row of which cells may be of other columns than those that they are in."""
        if self._file.format.get("delimiter") == ";" and any(map(ends_in_entity, row[:-1])):
            reason = "an HTML entity ends with the ; that separates cells: quote cells that hold entities"
            return _Fault(None, reason, tuple(filter(ends_in_entity, row[:-1])))
        if any(more := [cell.strip() for cell in row[len(self.columns.header) :]]):
            reason = "the row is longer than the header: quote cells that hold the delimiter"
            return _Fault(None, reason, (", ".join(more),))
        if len(row) < self._least_cells:
            reason = "the row is shorter than the header, so that any of its cells may be of another column"
            return _Fault(None, f"{reason}: write empty cells as well, or give the workbook itself")
        return None

    def _bad_row(
        self, line: int, stated: Mapping[str, str], fields: Mapping[str, Any], *faults: _Fault
    ) -> _BadRowError:
        """The error of a bad row; the shop that it hides is noted, so that no other row shows it (V1)."""
        said = {name: fields.get(name) or stated.get(name) for name in ("domain", "visibility")}
        hiding = hiding_of(line, {**said, "id": stated.get("id")}) if self._kind == "shops" else None
        for name in () if hiding is None else hiding.ids or (hiding.domain or "",):
            # Rows before this one were read already.
            self._hidden_later |= name not in self._unreadable
            self._unreadable.setdefault(name, line)
        return _BadRowError(*faults)

    def _may_lack(self, name: str) -> bool:
        """Whether a record without the field says no more than the row does."""
        known = self._model.model_fields.get(name)
        if known is None:
            return name == "currency"
        return not known.is_required() and not FIELDS[self._kind][name].limits

    def _fields(self, row: Sequence[str], stated: Mapping[str, str]) -> tuple[dict[str, Any], list[_Fault]]:
        """The fields of a row as a line of the catalogue, and the faults of those that can't be read."""
        fields: dict[str, Any] = {}
        faults: list[_Fault] = []
        for name in stated:
            try:
                if name not in {"discount_kind", "free_shipping"} or self._kind != "coupons":
                    fields[name] = self._read(name, stated)
            except UnreadableError as error:
                faults.append(_Fault(name, error.reason, error.values))
        if self._kind == "policies":
            terms.complete(fields)
        if fields.get("discount", "") is None:
            del fields["discount"]
        if self._kind == "shops" and self.columns.positions.get("name") == self.columns.positions.get("domain"):
            fields["name"] = reduce_host(fields.get("domain", "")) or fields.get("name", "")
        # What is said of all amounts does not hold for a row whose own currency can't be read.
        currency = self.stated.constants.get("currency")
        faults += self._set_currency(fields, stated, None if any(one.of == "currency" for one in faults) else currency)
        faults += self._set_defaults(fields, stated, row)
        return fields, faults

    def _read(self, name: str, stated: Mapping[str, str]) -> object:
        """What the cell of a field says; UnreadableError if that is not clear. None for a discount that is not said."""
        text, read = stated[name], FIELDS[self._kind][name].read
        if name == "shop_id" and text not in self._shops:
            raise UnreadableError(self._no_shop(text), text)
        if name == "shop_id":
            return self._shops[text]
        if name == "visibility":
            return self._visibility_of(text)
        if read in DATES:
            return read(text, self._orders.get(name, self.stated.dates))
        currency = None
        with suppress(UnreadableError):
            currency = cells.currency(stated.get("currency", ""))
        if read in AMOUNTS:
            return read(text, currency)
        if name != "discount":
            return read(text)
        ships_free = "free_shipping" in stated and cells.yes_or_no(stated["free_shipping"])
        if not text and not ships_free and "discount_kind" not in stated:
            return None
        return cells.discount(text, stated.get("discount_kind", ""), currency, ships_free=ships_free)

    def _no_shop(self, text: str) -> str:
        if self.stated.by_name:
            return "is no id and no domain of a shop of the catalogue, and not the name of exactly one"
        hint = "" if has_dot(text) else "; --by-name also takes the names of shops"
        return f"is no id and no domain of a shop of the catalogue{hint}"

    def _visibility_of(self, text: str) -> str:
        said = text.casefold()
        known = self.visibilities.get(said, said)
        if known not in VISIBILITIES:
            raise UnreadableError("is none that is known", text)
        return known

    @staticmethod
    def _set_currency(fields: dict[str, Any], stated: Mapping[str, str], of_all: str | None) -> Iterator[_Fault]:
        """Give amounts without a currency that of the row or of all; with none or another one they are faults."""
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
        if self._kind == "coupons":
            fields.setdefault("verification_status", "unverified")
        if "id" not in stated and "id" in self._model.model_fields and (made := self._made_id(fields)):
            fields["id"] = made
        if "visibility" not in self.columns.positions:
            known = (fields.get("id", ""), reduce_host(fields.get("domain", "")) or "")
            before = (self._hidden[name] for name in known if name in self._hidden)
            fields["visibility"] = next(before, VISIBILITIES[0])
        elif "visibility" not in stated and "" in self.visibilities:
            fields["visibility"] = self.visibilities[""]
        elif "visibility" not in stated and "visibility" not in self.stated.constants:
            yield self._fault("visibility", "is missing", row)
        said = self.stated.constants.get("visibility")
        if "visibility" not in stated and said is not None:
            # It hides, and publishes no shop that was hidden before.
            fields["visibility"] = said if said != VISIBILITIES[0] else fields.get("visibility", said)

    def _made_id(self, fields: Mapping[str, Any]) -> str | None:
        if self._kind == "shops":
            return id_of(fields["domain"]) if "domain" in fields else None
        within = fields.get("code") or fields.get("url") or fields.get("title")
        return id_within(fields["shop_id"], within) if within and "shop_id" in fields else None

    def _fault(self, name: str | None, reason: str, row: Sequence[str]) -> _Fault:
        """The problem with a field of a row, and the values that a sheet may hold instead."""
        fault = _Fault(name, reason)
        position = self.columns.positions.get(fault.of)
        text = "" if position is None or position >= len(row) else row[position].strip()
        if len(text.splitlines()) > 1:
            reason = f"{reason}: the cell has a line break"
        elif name == "categories":
            column = "" if name in self.columns.positions else "--map COLUMN=categories names their column, "
            reason = f"{reason}; {column}--category gives one to rows without any"
        elif name == "visibility" and not text and position is not None:
            option = shlex.quote(f"{self.columns.header[position]}:=under_review")
            reason = f"{reason}; --map-value {option} hides such rows"
        return _Fault(name, reason, (text,) if text else ())

    def _refuse_repeated(self, record: Record, line: int) -> None:
        """Refuse a key that an earlier row has. The newer of two versions is used.

        Without versions, a row that hides a shop is used instead of one that shows it, whichever comes first (V1).
        """
        is_shown = not isinstance(record, ShopRecord) or is_public(record)
        if isinstance(record, ShopRecord) and is_shown:
            self._refuse_hidden(record)
        if record.order != NO_ORDER:
            return
        if record.key in self._suspended:
            reason = f"is that of line {self._suspended[record.key]}, which is not public: neither is used"
            raise _BadRowError(_Fault(record.key_fields[0], reason, (record.key,)))
        hiding = self._hiding.get(record.key) if is_shown else self._hiding.setdefault(record.key, line)
        first = hiding if is_shown and hiding else self._lines.setdefault(record.key, line)
        if first != line and hiding == line:
            self._hidden_later = True
        elif first != line:
            name = record.key_fields[0]
            made = {"shops": "domain", "coupons": "shop and code", "offers": "shop and URL or title"}.get(self._kind)
            suffix = f", made from the same {made}" if name == "id" and name not in self.columns.positions else ""
            used = ", which is not public and is used instead" if is_shown and hiding else ""
            reason = f"is already that of another row{suffix}{used}"
            raise _BadRowError(_Fault(name, reason, (f"{record.key} of line {first}",)))

    def _refuse_hidden(self, shop: ShopRecord) -> None:
        for name, of in (("id", shop.id), ("domain", shop.domain)):
            if of in self._unreadable:
                reason = f"is that of line {self._unreadable[of]}, a bad row that is not public: neither is used"
                raise _BadRowError(_Fault(name, reason, (of,)))


def _shop_ids(directory: Path, references: Collection[str], *, by_name: bool = False) -> Mapping[str, str]:
    """The ids of the shops of a catalogue, by these references: ids, domains (R1), or unique whole names (`by_name`).

    Of several shops of one domain the one that a build would give it is meant.
    """
    of_ids = {text for text in references if not has_dot(text)}
    hosts = {text: reduce_host(text) for text in references if has_dot(text)}
    wanted = set(hosts.values())
    ids, named = dict[str, str](), dict[str, set[str]]()
    owners = dict[str | None, ShopRecord]()
    for shop in _shops_of(directory):
        if shop.id in of_ids:
            ids[shop.id] = shop.id
        if shop.domain in wanted:
            owners[shop.domain] = min(
                (shop, owners.get(shop.domain, shop)),
                key=lambda one: (not is_public(one), -(one.popularity or 0), one.id),
            )
        if by_name and shop.name in references:
            named.setdefault(shop.name, set()).add(shop.id)
    by_names = {name: next(iter(found)) for name, found in named.items() if len(found) == 1}
    return {**by_names, **ids, **{text: owners[host].id for text, host in hosts.items() if host in owners}}


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


def id_of(domain: str) -> str:
    """A shop's id from its domain, the same for every form of the domain; empty where the text is not a domain."""
    host = reduce_host(domain) or ""
    made = _NO_ID.sub("_", host)
    return made if len(made) <= _MAX_ID else _shortened(made, host)


def id_within(shop_id: str, text: str) -> str:
    """The id of a record that is unique within a shop: a code, or an offer's title."""
    whole = f"{shop_id}-{text}"
    made = _NO_ID.sub("_", whole)
    return made if len(made) <= _MAX_ID and _NO_ID.sub("_", text) == text else _shortened(made, whole)


def _shortened(made: str, whole: str) -> str:
    digest = hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()
    return f"{made[: _MAX_ID - len(digest) - 1]}_{digest}"
