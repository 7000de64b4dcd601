"""The command `shop-directory check URL`: the report is standard output; credentials go to the service only."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from shop_directory.conformance.bounds import USUAL, Bounds
from shop_directory.settings.commands import ExitCode, JsonOption, end_command

if TYPE_CHECKING:
    from shop_directory.conformance.rule import Rule
    from shop_directory.conformance.run import Run

TokenOption = Annotated[
    str | None,
    typer.Option(
        envvar="SHOP_DIRECTORY_API_TOKEN",
        show_envvar=False,
        help=r"An API token, for the tools that need one and for larger quotas. \[env: SHOP_DIRECTORY_API_TOKEN]",
    ),
]
OpsKeyOption = Annotated[
    str | None,
    typer.Option(
        envvar="SHOP_DIRECTORY_OPS_KEY",
        show_envvar=False,
        help=r"The operations key, for the two operations endpoints. \[env: SHOP_DIRECTORY_OPS_KEY]",
    ),
]
UnderReviewOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID_OR_DOMAIN", help="A shop that is under review: it must look unknown. May be given several times."
    ),
]


def check(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The address of the service, such as https://shops.example.")
    ] = None,
    token: TokenOption = None,
    ops_key: OpsKeyOption = None,
    under_review: UnderReviewOption = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="Send reports too: a run appends up to 20 of them.")] = False,
    only: Annotated[str | None, typer.Option(metavar="IDS", help="Check only these rules, such as I20,I21.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds for one response.")] = USUAL.timeout,
    within: Annotated[float, typer.Option(min=1, max=86_400, help="Seconds for the whole run.")] = USUAL.within,
    list_rules: Annotated[bool, typer.Option("--list", help="List the rules, and send no request.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check from outside whether a running service keeps the rules of the interface.

    The catalogue of the service need not be known: the check looks for shops
    and coupons that a rule applies to, and a rule without any is "not seen",
    never passed. It sends requests to the given address only, writes nothing
    without --write, and waits where a quota is used up.

    Examples:
      shop-directory check http://127.0.0.1:8080
      shop-directory check http://127.0.0.1:8080 --only I20,I21 --json
      shop-directory check --list

    Exit codes: 0 no rule is broken, 1 a rule is broken, 2 an option or the
    URL is wrong, 3 no Shop Directory answers, or not every rule was checked.
    """
    from shop_directory.conformance.run import NoServiceError, RunOptions, run

    rules = _selected(only)
    if list_rules:
        _list(rules, as_json=as_json)
        return
    bounds = Bounds(timeout=timeout, within=within)
    credentials = (_header("--token", token), _header("--ops-key", ops_key))
    options = RunOptions(_address(url), *credentials, tuple(under_review or ()), write=write, bounds=bounds)
    try:
        found = asyncio.run(run(options, rules, on_wait=_report_wait))
    except NoServiceError as error:
        end_command(ExitCode.UNAVAILABLE, str(error))
    _report(found, credentials, as_json=as_json)


def _report_wait(seconds: float) -> None:
    typer.echo(f"The quota is used up: waiting {seconds:.0f} s. With a token the quota is larger.", err=True)


def _report(found: "Run", secrets: Sequence[str | None], *, as_json: bool) -> None:
    from rich.console import Console

    from shop_directory.conformance.report import print_run, run_document
    from shop_directory.conformance.rule import RuleOutcome

    if as_json:
        print(json.dumps(run_document(found, secrets), ensure_ascii=False))
    else:
        print_run(found, secrets, Console())
    if found.of(RuleOutcome.FAILED):
        raise typer.Exit(ExitCode.BAD_INPUT)
    if found.unfinished:
        end_command(ExitCode.UNAVAILABLE, "Not every rule could be checked; the report has the reasons.")


def _list(rules: "Sequence[Rule]", *, as_json: bool) -> None:
    from rich.console import Console

    from shop_directory.conformance.report import print_rules, rules_document
    from shop_directory.conformance.rules import UNSEEN

    if as_json:
        print(json.dumps(rules_document(rules, UNSEEN), ensure_ascii=False))
    else:
        print_rules(rules, UNSEEN, Console())


def _selected(only: str | None) -> "tuple[Rule, ...]":
    from shop_directory.conformance.rules import RULES

    if only is None:
        return RULES
    wanted = {rule_id.strip() for rule_id in only.split(",")}
    if wanted - {rule.id for rule in RULES}:
        end_command(ExitCode.USAGE, "--only names an unknown rule; --list shows all rules.")
    return tuple(rule for rule in RULES if rule.id in wanted)


def _address(url: str | None) -> str:
    """The base URL, checked before any request is sent."""
    try:
        found = urlsplit((url or "").strip())
        is_address = found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        end_command(ExitCode.USAGE, "URL must be the address of a service, such as https://shops.example.")
    if "@" in found.netloc or found.query or found.fragment:
        end_command(ExitCode.USAGE, "URL must have no credentials, no query and no fragment.")
    return found.geturl().rstrip("/")


def _header(option: str, value: str | None) -> str | None:
    """A credential as a header value; None where it is blank."""
    trimmed = (value or "").strip()
    if not (trimmed.isascii() and trimmed.isprintable()):
        end_command(ExitCode.USAGE, f"{option} must be printable ASCII.")
    return trimmed or None
