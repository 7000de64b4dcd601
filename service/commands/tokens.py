"""The commands `shop-directory token new | list | revoke`. Only `new` ever shows the text of a token."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import Token, TokenStore, TokensUnavailable
from service.auth.secrets import hash_of, new_token_id, new_token_text
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, loaded, setting_option

if TYPE_CHECKING:
    from service.settings.stores import StoreSettings

T = TypeVar("T")

_MAX_NAME: Final = 100
_CLASS: Final = re.compile("[a-z][a-z0-9-]{0,31}")
_SPAN: Final = re.compile("([1-9][0-9]{0,4})([hd])")
# The options of settings whose names differ.
_OPTIONS: Final = {"token_store": "--store", "token_file": "--path", "redis_prefix": "--prefix"}
_SECONDS: Final = {"h": 3600, "d": 86_400}
# No request waits for a command, and revoking a token must not fail because Redis is slow.
_COMMAND_SECONDS: Final = 5.0


def _complete_ids(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The ids for completion in a shell; none if the store does not answer, as completion must print no messages."""
    from service.settings.stores import StoreSettings
    from shop_directory.settings.reading import SettingsError

    options = context.parent.params if context.parent else {}
    try:
        settings = StoreSettings.load(
            **_as_settings(**{name: options.get(name) for name in ("store", "path", "redis_url", "prefix")})
        )
        if settings.token_store is TokenStoreKind.SQLITE and not settings.token_file.exists():
            return []
        issued = asyncio.run(_call_store(settings, lambda store: store.all()))
    except (SettingsError, TokensUnavailable):
        return []
    return [(each.id, each.name) for each in issued if each.id.startswith(incomplete)]


StoreOption = Annotated[TokenStoreKind | None, setting_option("TOKEN_STORE", "sqlite", "Where tokens are stored.")]
PathOption = Annotated[Path | None, setting_option("TOKEN_FILE", "var/tokens.sqlite", "The file of the SQLite store.")]
# A password in an option would show in the list of processes; the environment or a file is better.
UrlOption = Annotated[
    str | None, setting_option("REDIS_URL", "redis://127.0.0.1:6379/0", "The URL of the Redis store.")
]
PrefixOption = Annotated[str | None, setting_option("REDIS_PREFIX", "shopdir", "The prefix of its keys.")]

token = typer.Typer(help="Issue, list and revoke API tokens.", no_args_is_help=True)


@token.callback()
def _token(
    context: typer.Context,
    store: StoreOption = None,
    path: PathOption = None,
    redis_url: UrlOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Issue, list and revoke API tokens. The service sees every change within 2 seconds.

    The settings are those of the service, from the environment.
    """
    context.obj = _as_settings(store=store, path=path, redis_url=redis_url, prefix=prefix)


def _as_settings(*, store: object, path: object, redis_url: object, prefix: object) -> Mapping[str, object]:
    return {"token_store": store, "token_file": path, "redis_url": redis_url, "redis_prefix": prefix}


@token.command("new")
def new_command(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Who or what it is for, in 1 to 100 characters.")],
    quota_class: Annotated[
        str,
        typer.Option(
            "--class",
            help="Its quota class; one that SHOP_DIRECTORY_QUOTA_CLASSES of the service lacks has the default quotas.",
        ),
    ] = "default",
    expires: Annotated[
        str | None,
        typer.Option(show_default="never", help="When it expires: 90d, 12h, or a time such as 2030-01-31T00:00:00Z."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Issue a token.

    Its text is printed once and can't be retrieved later.

    Examples:
      shop-directory token new --name "price widget" --expires 90d
      shop-directory token new --name "till 4" --class default --json

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    issued = Token(new_token_id(), _name(name), _quota_class(quota_class), _expiry(expires))
    text = new_token_text()
    settings = _store_settings(context)
    _with_store(settings, lambda store: store.issue(issued, hash_of(text)))
    if as_json:
        typer.echo(json.dumps({"token": text, **_as_wire(issued)}, ensure_ascii=False))
        return
    typer.echo(text)
    # A service that reads another file, such as that of another directory, does not know the token.
    typer.echo(
        f"Token {issued.id} is stored in {_location(settings)}. Its text is shown only once: send it in the header"
        " x-api-token.",
        err=True,
    )


@token.command("list")
def list_command(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the issued tokens, without their texts.

    A line has the id, the quota class, the expiry and the name of a token.

    Examples:
      shop-directory token list
      shop-directory token list --json

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    settings = _store_settings(context)
    tokens = _with_store(settings, lambda store: store.all())
    if as_json:
        typer.echo(json.dumps([_as_wire(found) for found in tokens], ensure_ascii=False))
        return
    if not tokens:
        typer.echo(f"There are no tokens in {_location(settings)}.", err=True)
    for found in tokens:
        typer.echo(f"{found.id}  {found.quota_class:<12}  {_expiry_text(found):<24}  {found.name}")


@token.command("revoke")
def revoke_command(
    context: typer.Context,
    token_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", autocompletion=_complete_ids, help="The id that `list` shows, not the token's text."
        ),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: it is refused within 2 seconds, without a restart.

    Examples:
      shop-directory token revoke 0123456789abcdef

    Exit codes: 0 done, 1 there is no such token, 2 wrong usage, 3 the store
    does not answer.
    """
    revoked = _with_store(_store_settings(context), lambda store: store.revoke(token_id))
    if as_json:
        typer.echo(json.dumps({"revoked": revoked}))
    elif revoked:
        typer.echo("Revoked. The token is refused within 2 seconds.")
    if not revoked:
        # The message does not repeat the id, as it may be a pasted token.
        end_command(ExitCode.BAD_INPUT, "There is no token with this id; `list` shows the ids.")


def _store_settings(context: typer.Context) -> "StoreSettings":
    from service.settings.stores import StoreSettings

    return loaded(StoreSettings, _OPTIONS, **context.obj)


def _location(settings: "StoreSettings") -> str:
    if settings.token_store is TokenStoreKind.SQLITE:
        return str(settings.token_file.absolute())
    return f"Redis with the prefix {settings.redis_prefix}"


def _with_store(settings: "StoreSettings", work: Callable[[TokenStore], Awaitable[T]]) -> T:
    try:
        return asyncio.run(_call_store(settings, work))
    except TokensUnavailable as error:
        # A store that did not answer in time may have made the change.
        end_command(
            ExitCode.UNAVAILABLE,
            f"The token store can't be used ({error}). "
            "If a token was to be issued or revoked, `list` will show whether it was.",
        )


async def _call_store(settings: "StoreSettings", work: Callable[[TokenStore], Awaitable[T]]) -> T:
    store = open_tokens(
        settings.token_store,
        settings.token_file,
        settings.redis_access,
        settings.redis_prefix,
        timeout=_COMMAND_SECONDS,
    )
    try:
        return await work(store)
    finally:
        await store.close()


def _name(name: str) -> str:
    trimmed = name.strip()
    if not trimmed or len(trimmed) > _MAX_NAME or not trimmed.isprintable():
        end_command(ExitCode.USAGE, f"--name must be 1 to {_MAX_NAME} printable characters.")
    return trimmed


def _quota_class(name: str) -> str:
    if _CLASS.fullmatch(name) is None:
        end_command(ExitCode.USAGE, "--class must be a lower-case letter and up to 31 more letters, digits or hyphens.")
    return name


def _expiry(text: str | None) -> int | None:
    """The second at which it expires; a time without a zone is UTC."""
    if text is None:
        return None
    now = time.time()
    if span := _SPAN.fullmatch(text):
        return int(now) + int(span[1]) * _SECONDS[span[2]]
    try:
        expiry = datetime.fromisoformat(text)
        expires_at = int((expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        end_command(
            ExitCode.USAGE, "--expires must be a span such as 90d or 12h, or a time such as 2030-01-31T00:00:00Z."
        )
    if expires_at <= now:
        end_command(ExitCode.USAGE, "--expires must be in the future.")
    return expires_at


def _as_wire(issued: Token) -> dict[str, Any]:
    expires_at = None if issued.expires_at is None else _expiry_text(issued)
    return {"id": issued.id, "name": issued.name, "class": issued.quota_class, "expires_at": expires_at}


def _expiry_text(issued: Token) -> str:
    if issued.expires_at is None:
        return "never expires"
    return datetime.fromtimestamp(issued.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
