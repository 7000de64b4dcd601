"""`shop-directory index hide` and `show`, and what `index status` says of single shops."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from indexer.commands import parts
from indexer.commands.parts import counted
from shop_directory.settings.commands import DataDirOption, EngineOption, ExitCode, JsonOption, end_command

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from indexer.jobs.shop_visibility import ShopStatus
    from indexer.settings import IndexerSettings
    from indexer.sinks.protocol import Sink
    from indexer.state.state import States

ShopsArgument = Annotated[list[str], typer.Argument(metavar="SHOP...", help="Ids or domains of shops.")]


def hide_command(
    shops: ShopsArgument,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Hide shops, with all that belongs to them, until `show` or a newer record.

    The change has the next version of the shop's record, as a line of
    changes.ndjson would. A running follower or build applies it within a second;
    without one it is applied at once. A domain hides all shops that claim it.

    Examples:
      shop-directory index hide shop_abc-handel24
      shop-directory index hide abc-handel24.internal shop_acai-da-serra --json

    Exit codes: 0 done, 1 a shop is unknown or nothing is live, 2 wrong usage,
    3 the engine failed, 4 another job is running, which applies it later.
    """
    opened = parts.opened("Not hidden", engine, data_dir, state_dir)
    found = _changed(opened, shops, wait, public=False, as_json=as_json)
    if unknown := [shop.reference for shop in found if shop.id is None]:
        end_command(ExitCode.BAD_INPUT, f"Unknown, so not hidden: {', '.join(unknown)}. Name ids or domains.")


def show_command(
    shops: ShopsArgument,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Show shops that are hidden or removed, with all that belongs to them.

    It is applied as by `index hide`, with the records that the indexer's state has.
    A catalogue whose records have no version does not hide them again.

    Examples:
      shop-directory index show shop_abc-handel24 shop_acai-da-serra

    Exit codes: 0 done, 1 a shop is unknown or can't be shown, or nothing is live,
    2 wrong usage, 3 the engine failed, 4 another job is running, which applies it
    later.
    """
    opened = parts.opened("Not shown", engine, data_dir, state_dir)
    found = _changed(opened, shops, wait, public=True, as_json=as_json)
    if failed := dict.fromkeys(shop.id or shop.reference for shop in found if not shop.shown):
        end_command(ExitCode.BAD_INPUT, f"Still not shown, for the reason above: {', '.join(failed)}.")


def _changed(
    opened: "AbstractContextManager[tuple[IndexerSettings, Sink, States]]",
    shops: Sequence[str],
    wait: float,
    *,
    public: bool,
    as_json: bool,
) -> "Sequence[ShopStatus]":
    from indexer.jobs.shop_visibility import set_visibility

    with opened as (_, sink, states):
        generation, found = set_visibility(sink, states, shops, public=public, wait=wait)
    print_statuses(generation, found, as_json=as_json)
    return found


def print_statuses(generation: str, found: Sequence["ShopStatus"], *, as_json: bool) -> None:
    """Print what the state of a generation knows of shops."""
    if as_json:
        print(json.dumps({"generation": generation, "shops": [shop.as_wire() for shop in found]}, ensure_ascii=False))
    else:
        print("\n".join(map(_as_text, found)))


def _as_text(shop: "ShopStatus") -> str:
    verdict = f"{shop.id or shop.reference}: {'shown' if shop.reason is None else f'not shown: {shop.reason}'}"
    is_taken = shop.visibility != "public" and shop.domain_holder is not None
    holder = f", which {shop.domain_holder} has" if is_taken else ""
    origin = "a change" if shop.line is None else f"line or row {shop.line} of the catalogue"
    facts = (
        f"{shop.domain}{holder}" if shop.domain else "",
        *(f"{name} {value}" for name, value in shop.order.items()),
        f"from {origin}" if shop.origin else "",
        f"with {counted(shop.records)}" if shop.records else "",
        "its documents are still to be written" if shop.pending else "",
    )
    return f"{verdict}; {'; '.join(filter(None, facts))}" if any(facts) else verdict
