"""Settings from the environment (SHOP_DIRECTORY_...), secrets also from files. A wrong one is named, never its value.

A secret setting X may be in the file that X_FILE names instead, as containers hand secrets over.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Self, TypeVar, get_args

from pydantic import BeforeValidator, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

PREFIX: Final = "SHOP_DIRECTORY_"
FILE: Final = "_FILE"
MOST_SECRET_BYTES: Final = 65_536

# Most options are named like their setting.
NAMED_ALIKE: Final[Mapping[str, str]] = MappingProxyType({})

S = TypeVar("S", bound="EnvironmentSettings")


class SettingsError(Exception):
    """A setting is wrong; the text names the variable and says what it must be."""


def _parts(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parts)]


class _Environment(EnvSettingsSource):
    """The environment, where bad JSON is a wrong value like any other."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:  # noqa: ANN401 - any setting
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


class EnvironmentSettings(BaseSettings):
    """Settings of one side. A field's title says what it is for; its description goes on after "must be"."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - ours is in its place
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - there is none
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - load() reads them, to name what is wrong
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given comes first, then the environment."""
        return init_settings, _Environment(settings_cls)

    @classmethod
    def load(cls, options: Mapping[str, str] = NAMED_ALIKE, /, **given: Any) -> Self:  # noqa: ANN401 - any setting
        """Read the settings.

        Args:
            options: the options of settings that are not named like them; errors name these.
            given: settings from the command line; they come before the environment. None is not given.

        Raises:
            SettingsError: naming all that is wrong.
        """
        stated = {name: value for name, value in given.items() if value is not None}
        return _load(cls, stated, {name: options.get(name, option(name)) for name in stated})

    def contradictions(self) -> Iterator[str]:
        """Settings that are right by themselves and wrong together, a sentence each, without values."""
        yield from ()

    def cautions(self) -> Iterator[str]:
        """What the operator is told loudly at the start, a sentence each, without values."""
        yield from ()


def variable(name: str) -> str:
    """The variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def option(name: str) -> str:
    """The option of a command that states a setting."""
    return f"--{name.replace('_', '-')}"


def is_secret(field: FieldInfo) -> bool:
    """Whether a setting is never shown, and may come from a file."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


def set_variables() -> Mapping[str, str]:
    """The variables of this program that are set, an empty one being as good as none."""
    return {name.upper(): value for name, value in os.environ.items() if name.upper().startswith(PREFIX) and value}


def secret_files(kind: type[EnvironmentSettings]) -> Mapping[str, Path]:
    """The files that the environment names for secret settings, by setting."""
    there = set_variables()
    named = {name: variable(name) + FILE for name, field in kind.model_fields.items() if is_secret(field)}
    return {name: Path(there[found]) for name, found in named.items() if found in there}


def _load(kind: type[S], given: Mapping[str, Any], typed: Mapping[str, str]) -> S:
    there, read, wrong = set_variables(), dict[str, str](), list[str]()
    for name, path in secret_files(kind).items():
        if variable(name) in there:
            wrong.append(f"{variable(name)} and {variable(name)}{FILE} are both set: leave one of them out.")
            continue
        try:
            read[name] = _content(path)
        except ValueError as error:
            wrong.append(f"{variable(name)}{FILE} is wrong: {error}.")
    try:
        settings = kind(**{**read, **given})
    except ValidationError as error:
        wrong += _told(kind, error, read.keys() - given.keys(), typed)
    else:
        wrong += settings.contradictions()
    if wrong:
        raise SettingsError(" ".join(wrong))
    return settings


def _told(
    kind: type[EnvironmentSettings], error: ValidationError, from_files: set[str], typed: Mapping[str, str]
) -> list[str]:
    found = error.errors(include_input=False, include_url=False)
    together = [one["msg"].removeprefix("Value error, ") for one in found if not one["loc"]]
    names = sorted({str(one["loc"][0]) for one in found if one["loc"]})
    stated = {name: typed.get(name, f"{variable(name)}{FILE if name in from_files else ''}") for name in names}
    return together + [f"{stated[name]} is wrong: it must be {kind.model_fields[name].description}." for name in names]


def _content(path: Path) -> str:
    """A secret's text, without one newline at its end.

    Raises:
        ValueError: saying what is wrong with the file, and nothing of what it holds.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_SECRET_BYTES + 1)
    except OSError:
        raise ValueError("the file can't be read") from None
    if len(content) > MOST_SECRET_BYTES:
        raise ValueError(f"the file is larger than {MOST_SECRET_BYTES:,} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ValueError("the file is empty")
    return text
