"""Reads settings from the environment (SHOP_DIRECTORY_...), secrets also from files, and shows those in effect.

Neither errors nor displayed settings hold a secret; errors hold no value at all. The settings of all installed sides
are found by entry points, so that nothing imports both. Unknown variables, such as misspelt ones, are reported by name.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import BeforeValidator, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX: Final = "SHOP_DIRECTORY_"
FILE: Final = "_FILE"
MAX_SECRET_BYTES: Final = 65_536

GROUP: Final = "shop_directory.settings"

# Two letters that are exchanged in a name of four leave three quarters of it.
_MIN_SIMILARITY: Final = 0.75
HIDDEN: Final = "(hidden)"
_INTRODUCTION: Final = f"""\
# Settings

Made from the code by `make settings`: change the settings there, not this file.

All settings are environment variables, read once at the start; an empty one counts as not set. Options of a command
take precedence. The service (`serve`, `mcp`, `token`, `rechecks`) and the indexer (`index`) read the same environment
and ignore each other's settings. A value that is wrong, or contradicts another, stops the start with exit code 2 and a
message that names the variable and never the value. `serve`, `mcp`, `index` and `config` warn on standard error about
unknown `SHOP_DIRECTORY_` variables and suggest the one that may be meant.

A secret setting can be in a file instead: a variable with `{FILE}` at the end of its name holds the path of the file
(UTF-8, at most {MAX_SECRET_BYTES:,} bytes; a final newline is ignored). `shop-directory config` prints the effective
settings and where each comes from, with secrets hidden; `shop-directory serve --print-config` takes the options of
`serve` into account."""
_HEADER: Final = ("variable", "must be", "default", "what it is for")
# Read by tests and benchmarks only, so it is not a misspelt setting.
_DEVELOPMENT_VARIABLES: Final = frozenset((f"{PREFIX}DEV_DATA",))


class SettingsError(Exception):
    """A setting is wrong. The text names the variable and its valid values."""


def _parts(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


# Makes a tuple of texts of one text.
COMMA_SEPARATED: Final = (NoDecode, BeforeValidator(_parts))
CommaSeparated = Annotated[tuple[str, ...], *COMMA_SEPARATED]


class _Environment(EnvSettingsSource):
    """The environment; malformed JSON becomes a wrong value like any other."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:  # noqa: ANN401 - any setting
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


class EnvironmentSettings(BaseSettings):
    """Settings of one side. The title of a field states its purpose; its description continues "it must be".

    Where there is no description, the type or else the title says what it must be.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # the others are replaced, or not supported
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        **_: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Values from the command line take precedence over the environment."""
        return init_settings, _Environment(settings_cls)

    @classmethod
    def load(cls, options: Mapping[str, str] | None = None, /, **values: Any) -> Self:  # noqa: ANN401 - any setting
        """Read the settings; `values` from the command line take precedence, unless None.

        Error messages name an option as `options` does, by default after its setting. SettingsError names all
        settings that are wrong.
        """
        given = {name: value for name, value in values.items() if value is not None}
        environment, secrets, problems = environment_variables(), dict[str, str](), list[str]()
        for name, path in secret_files(cls).items():
            if variable(name) in environment:
                problems.append(f"{variable(name)} and {variable(name)}{FILE} are both set: leave one of them out.")
                continue
            try:
                secrets[name] = _read_secret(path)
            except ValueError as error:
                problems.append(f"{variable(name)}{FILE} is wrong: {error}.")
        try:
            settings = cls(**{**secrets, **given})
        except ValidationError as error:
            sources = {name: f"{variable(name)}{FILE}" for name in secrets}
            sources |= {name: (options or {}).get(name, f"--{name.replace('_', '-')}") for name in given}
            problems += _messages(cls, error, sources)
        else:
            problems += settings.contradictions()
        if problems:
            raise SettingsError(" ".join(problems))
        return settings

    def contradictions(self) -> Iterator[str]:
        """Settings that contradict each other: a sentence for each contradiction, without values."""
        yield from ()

    def cautions(self) -> Iterator[str]:
        """Warnings that are printed at the start: a sentence each, without values."""
        yield from ()


def variable(name: str) -> str:
    """The variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def is_secret(field: FieldInfo) -> bool:
    """Whether a setting is a secret: it is never shown, and may come from a file."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


def must_be(field: FieldInfo) -> str:
    """What a setting must be, as the end of a sentence."""
    if field.description is not None:
        return field.description
    kind: Any = field.annotation
    if kind is int:
        least, most = (getattr(bound, name) for bound, name in zip(field.metadata, ("ge", "le"), strict=True))
        return f"a whole number from {least} to {most}"
    if kind is bool or get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        *others, last = ("true", "false") if kind is bool else get_args(kind) or kind
        return f"{', '.join(others)} or {last}"
    title = field.title or ""
    return f"{title[:1].lower()}{title[1:].removesuffix('.')}"


def environment_variables() -> Mapping[str, str]:
    """The SHOP_DIRECTORY_ variables of the environment that are set and not empty."""
    return {name.upper(): value for name, value in os.environ.items() if name.upper().startswith(PREFIX) and value}


def secret_files(kind: type[EnvironmentSettings]) -> Mapping[str, Path]:
    """The files of secret settings that the environment names, by setting."""
    environment = environment_variables()
    names = {name: variable(name) + FILE for name, field in kind.model_fields.items() if is_secret(field)}
    return {name: Path(environment[key]) for name, key in names.items() if key in environment}


def _messages(kind: type[EnvironmentSettings], error: ValidationError, sources: Mapping[str, str]) -> list[str]:
    """What is wrong; a setting that has no other source is named by its variable."""
    errors = error.errors(include_input=False, include_url=False)
    general = [one["msg"].removeprefix("Value error, ") for one in errors if not one["loc"]]
    names = sorted({str(one["loc"][0]) for one in errors if one["loc"]})
    return general + [
        f"{sources.get(name) or variable(name)} is wrong: it must be {must_be(kind.model_fields[name])}."
        for name in names
    ]


def _read_secret(path: Path) -> str:
    """The text of a secret, without a final newline; ValueError names the problem with the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError:
        raise ValueError("the file can't be read") from None
    if len(content) > MAX_SECRET_BYTES:
        raise ValueError(f"the file is larger than {MAX_SECRET_BYTES:,} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ValueError("the file is empty")
    return text


def installed_sides() -> Mapping[str, type[EnvironmentSettings]]:
    """The settings by side; ImportError if a side is installed only in part."""
    return {entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def known_variables(kind: type[EnvironmentSettings]) -> Iterator[str]:
    """All variables of the settings."""
    for name, field in kind.model_fields.items():
        yield variable(name)
        if is_secret(field):
            yield variable(name) + FILE


def unknown_variables(own: type[EnvironmentSettings]) -> tuple[str, ...]:
    """A message for each set variable that no side knows; the other side is loaded only if `own` lacks some."""
    unknown = environment_variables().keys() - set(known_variables(own)) - _DEVELOPMENT_VARIABLES
    if not unknown:
        return ()
    try:
        known = {name for kind in (own, *installed_sides().values()) for name in known_variables(kind)}
    except ImportError:
        return ()  # the missing part may define them
    return tuple(_message(name, known) for name in sorted(unknown - known))


def _message(name: str, known: set[str]) -> str:
    if name.removesuffix(FILE) in known:
        return f"{name} is ignored: only secret settings can be in a file."
    suffixes = [each.removeprefix(PREFIX) for each in sorted(known)]
    close = get_close_matches(name.removeprefix(PREFIX), suffixes, n=1, cutoff=_MIN_SIMILARITY)
    meant = f" Did you mean {PREFIX}{close[0]}?" if close else ""
    return f"{name} is not a setting and is ignored.{meant}"


def effective(settings: EnvironmentSettings, options: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """The value and the source of each setting by its variable, in their order, as `--json` prints them.

    A value is that of JSON, `HIDDEN` for a secret that is set, None for a setting that is not. The source is `option`,
    as it is of the settings that `options` names, `environment`, `file` or `default`.
    """
    environment, files = environment_variables(), secret_files(type(settings))

    def source(name: str) -> str:
        if name in options:
            return "option"
        if variable(name) in environment:
            return "environment"
        return "file" if name in files else "default"

    return {
        variable(name): {"value": _shown(getattr(settings, name), secret=is_secret(field)), "source": source(name)}
        for name, field in type(settings).model_fields.items()
    }


def as_lines(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each effective setting."""
    lines = [(name, one["source"], _text(one["value"])) for name, one in settings.items()]
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {source:<{widths[1]}}  {value}".rstrip() for name, source, value in lines)


def _shown(value: object, *, secret: bool) -> Any:  # noqa: ANN401 - any JSON value
    if secret or isinstance(value, SecretStr):
        return None if value is None else HIDDEN
    return to_jsonable_python(value)


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings_page(sides: Mapping[str, type[EnvironmentSettings]]) -> str:
    """The whole page, in Markdown; the settings are given by side."""
    ordered = sorted(sides.items(), reverse=True)
    common = set.intersection(*(set(kind.model_fields) for _, kind in ordered))
    first = ordered[0][1]
    parts = [_INTRODUCTION, "## Both sides", _table(first, [name for name in first.model_fields if name in common])]
    for side, kind in ordered:
        parts += [f"## The {side}", _table(kind, [name for name in kind.model_fields if name not in common])]
    return "\n\n".join(parts) + "\n"


def _table(kind: type[EnvironmentSettings], names: Iterable[str]) -> str:
    lines = [_HEADER, tuple("---" for _ in _HEADER), *(_row(name, kind.model_fields[name]) for name in names)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    names = f"`{variable(name)}`" + (f", secret: or `{variable(name)}{FILE}`" if is_secret(field) else "")
    return names, must_be(field), _default(field), field.title or ""


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    text = _text(to_jsonable_python(value))
    return f"`{text}`" if text else "none"
