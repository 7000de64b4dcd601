"""docs/from-a-spreadsheet.md, typed: each command says what the page shows, and the tables are what imports do."""

import re
import tomllib
from typing import Final

import pytest

from indexer.catalogue.sheets import cells
from indexer.catalogue.sheets.columns import FIELDS, columns_of
from tests.people.docs.conftest import MakeWorld
from tests.people.docs.pages import BY_PATH
from tests.support.served import post

PAGE: Final = BY_PATH["docs/from-a-spreadsheet.md"]
SHEETS: Final = ("shops.csv", "codes.csv")
# Lines of progress, with sizes and times.
_PROGRESS: Final = re.compile(r"(Reading|Indexing|Verifying|Published)\b.*")
_OMITTED: Final = "..."
_TICKED: Final = re.compile(r"`([^`]+)`")


def typed() -> list[tuple[str, list[str]]]:
    """The commands of the page, each with the lines that it shows of what the command prints."""
    found: list[tuple[str, list[str]]] = []
    for line in (line for block in PAGE.blocks if block.language == "console" for line in block.text.splitlines()):
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def is_shown(shown: list[str], printed: list[str]) -> bool:
    """Whether lines are all that was printed, but for what they say is omitted."""
    pattern = "".join(f"{re.escape(line)}\n" if line != _OMITTED else "(?:.*\n)*" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def test_what_is_shown_is_compared_line_by_line() -> None:
    assert is_shown(["a", "..."], ["a", "b", "c"])
    assert is_shown(["...", "b", "c"], ["a", "b", "c"])
    assert is_shown(["...", "b"], ["b"])
    assert not is_shown(["a", "c"], ["a", "b", "c"])
    assert not is_shown(["a", "b"], ["a", "b", "c"])


def test_the_example_is_what_the_commands_print_and_its_site_is_served(make_world: MakeWorld) -> None:
    world = make_world(cloned=False, PYTHONUNBUFFERED="1")
    for name, block in zip(SHEETS, (block for block in PAGE.blocks if block.language == "csv"), strict=True):
        (world.shell.folder / name).write_text(block.text, encoding="utf-8")
    for command, shown in typed():
        if command == "shop-directory serve":
            world.do_one(command)
            continue
        printed = world.shell.run(f"({command}) 2>&1 || true").splitlines()
        lines = [line for line in printed if not _PROGRESS.fullmatch(line)]
        assert is_shown(shown, lines), (command, lines)
    found = post(f"http://127.0.0.1:{world.port}", "/tool/find_shop", {"query": ""}).json
    assert sorted(shop["name"] for shop in found["results"]) == ["Green Shelf", "Lamp House"]
    codes = post(f"http://127.0.0.1:{world.port}", "/tool/list_coupons", {}).json
    assert (codes["total_count"], codes["withheld"]["reserved_test_domain"]) == (2, 2)
    (saved,) = (block.text for block in PAGE.blocks if block.language == "toml")
    assert tomllib.loads((world.shell.folder / "codes.toml").read_text(encoding="utf-8")) == tomllib.loads(saved)
    world.shell.end_lasting()


def rows(kind: str) -> list[tuple[str, str, str]]:
    section = PAGE.text.partition(f"### Columns of {kind}\n")[2].partition("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| your column")]
    split = (re.split(r"(?<!\\)\|", line.strip("| ")) for line in lines)
    return [(column.strip(), field.strip().strip("`"), read.strip()) for column, field, read in split]


@pytest.mark.parametrize("kind", FIELDS)
def test_a_table_has_each_field_once(kind: str) -> None:
    assert sorted(field for _, field, _ in rows(kind)) == sorted(FIELDS[kind])


@pytest.mark.parametrize(("kind", "column", "field"), [(kind, *row[:2]) for kind in FIELDS for row in rows(kind)])
def test_the_columns_of_a_table_are_recognised(kind: str, column: str, field: str) -> None:
    needed = {name for name, known in FIELDS[kind].items() if not known.absent} - {field}
    constants = dict.fromkeys([*needed, "destinations", "kind"], "x")
    for name in _TICKED.findall(column.replace("`--map`", "")):
        constants.pop(field, None)
        assert columns_of([name], (), kind, constants=constants).positions == {field: 0}


@pytest.mark.parametrize(("kind", "field", "text"), [(kind, *row[1:]) for kind in FIELDS for row in rows(kind)])
def test_the_cells_of_a_table_are_read(kind: str, field: str, text: str) -> None:
    known = FIELDS[kind][field]
    for cell in _TICKED.findall(re.sub(r"as `\w+`|`--[\w-]+`|; (`\w+`) is (?:none|no end)", "", text)):
        read = cells.discount if field == "discount" else known.read
        assert read(cell.replace("\\|", "|")) is not None
    for word in re.findall(r"; `(\w+)` is (?:none|no end)", text):
        assert any(cells.plain(word) in cells.WORDS[table] for table in known.nothing.split())
