"""The operator's commands: `shop-directory token new | list | revoke`.

A token's text is shown once, by `new`, and is nowhere else. Exit codes: 0 done, 1 there is no such token, 2 wrong
usage, 3 the store does not answer.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeVar

import typer

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import Token, TokenStore, TokensUnavailable
from service.auth.secrets import hash_of, new_token_id, new_token_text
from shop_directory.settings.exit_codes import ExitCode, problem, problems_as_json

if TYPE_CHECKING:
    from service.settings.stores import StoreSettings

T = TypeVar("T")

_MAX_NAME: Final = 100
_CLASS: Final = re.compile("[a-z][a-z0-9-]{0,31}")
_SPAN: Final = re.compile("([1-9][0-9]{0,4})([hd])")
# The options of settings that are named otherwise.
_OPTIONS: Final = {"token_store": "--store", "token_file": "--path", "redis_prefix": "--prefix"}
_SECONDS: Final = {"h": 3600, "d": 86_400}


def _ids(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The ids that a shell may complete; none where the store can't be asked, as a shell wants no messages."""
    from service.settings.stores import StoreSettings
    from shop_directory.settings.reading import SettingsError

    above = context.parent.params if context.parent else {}
    try:
        settings = StoreSettings.load(
            **_given(**{name: above.get(name) for name in ("store", "path", "redis_url", "prefix")})
        )
        if settings.token_store is TokenStoreKind.SQLITE and not settings.token_file.exists():
            return []
        issued = asyncio.run(_asked(settings, lambda store: store.all()))
    except (SettingsError, TokensUnavailable):
        return []
    return [(found.id, found.name) for found in issued if found.id.startswith(incomplete)]


JsonOption = Annotated[
    bool, typer.Option("--json", callback=problems_as_json, is_eager=True, help="Print one JSON document instead.")
]

token = typer.Typer(help="Issue, list and revoke API tokens.", no_args_is_help=True)


@token.callback()
def _token(
    context: typer.Context,
    store: Annotated[
        TokenStoreKind | None,
        typer.Option(show_default="sqlite", help=r"Where tokens are kept. \[env: SHOP_DIRECTORY_TOKEN_STORE]"),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            show_default="var/tokens.sqlite", help=r"The SQLite store's file. \[env: SHOP_DIRECTORY_TOKEN_FILE]"
        ),
    ] = None,
    # A password in an option would show in the list of processes: better in the environment or a file.
    redis_url: Annotated[
        str | None,
        typer.Option(
            show_default="redis://127.0.0.1:6379/0", help=r"The Redis store's server. \[env: SHOP_DIRECTORY_REDIS_URL]"
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(show_default="shopdir", help=r"What its keys begin with. \[env: SHOP_DIRECTORY_REDIS_PREFIX]"),
    ] = None,
) -> None:
    """Issue, list and revoke API tokens. The service sees every change within 2 seconds.

    Settings are the service's own, from the environment.
    """
    context.obj = _given(store=store, path=path, redis_url=redis_url, prefix=prefix)


def _given(*, store: object, path: object, redis_url: object, prefix: object) -> Mapping[str, object]:
    """The options as settings."""
    return {"token_store": store, "token_file": path, "redis_url": redis_url, "redis_prefix": prefix}


@token.command("new")
def new_command(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Whom or what it is for, in 1 to 100 characters.")],
    quota_class: Annotated[
        str, typer.Option("--class", help="The name of its quotas, as in SHOP_DIRECTORY_QUOTA_CLASSES.")
    ] = "default",
    expires: Annotated[
        str | None,
        typer.Option(show_default="never", help="When it ends: 90d, 12h, or a time such as 2030-01-31T00:00:00Z."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Issue a token.

    Its text is printed this once and can't be had again.

    Examples:
      shop-directory token new --name "price widget" --expires 90d
      shop-directory token new --name "till 4" --class default --json

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    issued = Token(new_token_id(), _name(name), _quota_class(quota_class), _expiry(expires))
    text = new_token_text()
    _with_store(context, lambda store: store.issue(issued, hash_of(text)))
    if as_json:
        typer.echo(json.dumps({"token": text, **_as_wire(issued)}, ensure_ascii=False))
        return
    typer.echo(text)
    typer.echo(f"Token {issued.id}: it is shown this once. Send it in the header x-api-token.", err=True)


@token.command("list")
def list_command(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the tokens that are issued, without their texts.

    A line is an id, the class of its quotas, when it ends, and its name.

    Examples:
      shop-directory token list
      shop-directory token list --json

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    tokens = _with_store(context, lambda store: store.all())
    if as_json:
        typer.echo(json.dumps([_as_wire(found) for found in tokens], ensure_ascii=False))
        return
    for found in tokens:
        typer.echo(f"{found.id}  {found.quota_class:<12}  {_ends(found):<24}  {found.name}")


@token.command("revoke")
def revoke_command(
    context: typer.Context,
    token_id: Annotated[
        str,
        typer.Argument(metavar="ID", autocompletion=_ids, help="The id that `list` shows, not the token's text."),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: it stops counting within 2 seconds, without a restart.

    Examples:
      shop-directory token revoke 0123456789abcdef

    Exit codes: 0 done, 1 there is no such token, 2 wrong usage, 3 the store
    does not answer.
    """
    revoked = _with_store(context, lambda store: store.revoke(token_id))
    if as_json:
        typer.echo(json.dumps({"revoked": revoked}))
    elif revoked:
        typer.echo("Revoked. It stops counting within 2 seconds.")
    if not revoked:
        # The id is not repeated: somebody may have pasted the token itself.
        _stop(ExitCode.BAD_INPUT, "There is no token of this id; `list` shows the ids.")


def _with_store(context: typer.Context, work: Callable[[TokenStore], Awaitable[T]]) -> T:
    from service.settings.stores import StoreSettings
    from shop_directory.settings.reading import SettingsError

    try:
        settings = StoreSettings.load(_OPTIONS, **context.obj)
    except SettingsError as error:
        _stop(ExitCode.USAGE, str(error))
    try:
        return asyncio.run(_asked(settings, work))
    except TokensUnavailable as error:
        _stop(ExitCode.UNAVAILABLE, f"Nothing was done: the token store does not answer ({error}).")


async def _asked(settings: "StoreSettings", work: Callable[[TokenStore], Awaitable[T]]) -> T:
    """What the store answers; it is opened for that and closed after it."""
    store = open_tokens(settings.token_store, settings.token_file, settings.redis_access, settings.redis_prefix)
    try:
        return await work(store)
    finally:
        await store.close()


def _name(name: str) -> str:
    trimmed = name.strip()
    if not trimmed or len(trimmed) > _MAX_NAME or not trimmed.isprintable():
        _stop(ExitCode.USAGE, f"--name must be 1 to {_MAX_NAME} printable characters.")
    return trimmed


def _quota_class(name: str) -> str:
    if _CLASS.fullmatch(name) is None:
        _stop(ExitCode.USAGE, "--class must be a lower-case letter and up to 31 more letters, digits or hyphens.")
    return name


def _expiry(text: str | None) -> int | None:
    """The second at which it ends; a time without a zone is UTC."""
    if text is None:
        return None
    now = time.time()
    if span := _SPAN.fullmatch(text):
        return int(now) + int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
        ends = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        _stop(ExitCode.USAGE, "--expires must be a span such as 90d or 12h, or a time such as 2030-01-31T00:00:00Z.")
    if ends <= now:
        _stop(ExitCode.USAGE, "--expires must lie ahead.")
    return ends


def _as_wire(shown: Token) -> dict[str, Any]:
    ends = None if shown.expires_at is None else _ends(shown)
    return {"id": shown.id, "name": shown.name, "class": shown.quota_class, "expires_at": ends}


def _ends(shown: Token) -> str:
    if shown.expires_at is None:
        return "never ends"
    return datetime.fromtimestamp(shown.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stop(exit_code: ExitCode, message: str) -> NoReturn:
    typer.echo(problem(exit_code, message), err=True)
    raise typer.Exit(exit_code)
