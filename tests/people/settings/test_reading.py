"""Settings are read from the environment and secrets also from files; what is wrong is named and never repeated."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from pydantic import Field, SecretStr

from indexer.settings import IndexerSettings
from service.settings.service import Settings
from shop_directory.settings.reading import (
    FILE,
    MAX_SECRET_BYTES,
    EnvironmentSettings,
    SettingsError,
    installed_sides,
    is_secret,
    variable,
)

CANARY: Final = "zqcanaryzq"
KEY: Final = "SHOP_DIRECTORY_KEY"


class Small(EnvironmentSettings):
    """A secret, and a number below it."""

    key: Annotated[SecretStr | None, Field(min_length=3, description="at least 3 characters")] = None
    most: Annotated[int, Field(description="a whole number")] = 9
    least: Annotated[int, Field(description="a whole number")] = 1

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.least > self.most:
            yield f"{variable('least')} is over {variable('most')}."


def _wrong(**given: Any) -> str:  # noqa: ANN401 - any setting
    with pytest.raises(SettingsError) as raised:
        Small.load(**given)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
    return str(raised.value)


def _key(settings: Small) -> str | None:
    return None if settings.key is None else settings.key.get_secret_value()


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"open sesame", "open sesame"),
        (b"open sesame\n", "open sesame"),
        (b"open sesame\r\n", "open sesame"),
        (b"open sesame\n\n", "open sesame\n"),
        (b" open sesame ", " open sesame "),
        ("öffne dich\n".encode(), "öffne dich"),
        (b"x" * MAX_SECRET_BYTES, "x" * MAX_SECRET_BYTES),
    ],
)
def test_a_secret_is_what_its_file_holds_but_for_one_newline_at_the_end(
    bare: pytest.MonkeyPatch, tmp_path: Path, content: bytes, key: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    bare.setenv(KEY + FILE, str(path))
    assert _key(Small.load()) == key


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", f"{KEY}_FILE is wrong: the file is empty."),
        (b"\n", f"{KEY}_FILE is wrong: the file is empty."),
        (None, f"{KEY}_FILE is wrong: the file can't be read."),
        (CANARY.encode() + b"\xff", f"{KEY}_FILE is wrong: the file is not UTF-8."),
        (CANARY.encode() + b"x" * MAX_SECRET_BYTES, f"{KEY}_FILE is wrong: the file is larger than 65,536 bytes."),
        (b"zq", f"{KEY}_FILE is wrong: it must be at least 3 characters."),
    ],
)
def test_a_file_that_is_no_secret_is_refused_by_name(
    bare: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / CANARY
    if content is not None:
        path.write_bytes(content)
    bare.setenv(KEY + FILE, str(path))
    assert _wrong() == message


def test_a_secret_and_its_file_are_not_both_given(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(CANARY)
    bare.setenv(KEY, CANARY)
    bare.setenv(KEY + FILE, str(tmp_path / "key"))
    assert _wrong() == f"{KEY} and {KEY}_FILE are both set: leave one of them out."


def test_an_empty_variable_is_none(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("open sesame")
    bare.setenv(KEY, "")
    bare.setenv(KEY + FILE, str(tmp_path / "key"))
    bare.setenv("SHOP_DIRECTORY_MOST", "")
    settings = Small.load()
    assert (_key(settings), settings.most) == ("open sesame", 9)
    bare.setenv(KEY + FILE, "")
    assert _key(Small.load()) is None


def test_only_secrets_come_from_files(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "most").write_text("3")
    bare.setenv("SHOP_DIRECTORY_MOST_FILE", str(tmp_path / "most"))
    assert Small.load().most == 9


def test_what_is_given_comes_first_then_the_environment(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("SHOP_DIRECTORY_MOST", "3")
    assert (Small.load().most, Small.load(most=4).most, Small.load(most=None).most) == (3, 4, 3)


def test_all_that_is_wrong_is_named_at_once_without_values(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare.setenv(KEY + FILE, str(tmp_path / CANARY))
    bare.setenv("SHOP_DIRECTORY_MOST", CANARY)
    bare.setenv("SHOP_DIRECTORY_LEAST", CANARY)
    assert _wrong() == (
        "SHOP_DIRECTORY_KEY_FILE is wrong: the file can't be read. "
        "SHOP_DIRECTORY_LEAST is wrong: it must be a whole number. "
        "SHOP_DIRECTORY_MOST is wrong: it must be a whole number."
    )


def test_what_is_wrong_only_together_is_named(bare: pytest.MonkeyPatch) -> None:
    assert _wrong(least=3, most=2) == "SHOP_DIRECTORY_LEAST is over SHOP_DIRECTORY_MOST."


def test_every_secret_of_both_sides_can_come_from_a_file(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind in installed_sides().values():
        secrets = [name for name, field in kind.model_fields.items() if is_secret(field)]
        assert len(secrets) >= 2
        for name in secrets:
            # A setting of that name of its own would be read as one.
            assert f"{name}{FILE.lower()}" not in kind.model_fields


def test_the_service_and_the_indexer_take_their_secrets_from_files(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("opensearch_password", "redis_url", "api_token", "sql_url"):
        (tmp_path / name).write_text(f"redis://{name}\n")
        bare.setenv(variable(name) + FILE, str(tmp_path / name))
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_USER", "reader")
    service, indexer = Settings.load(), IndexerSettings.load()
    assert service.cluster_access == indexer.cluster_access
    assert service.cluster_access.password == "redis://opensearch_password"
    assert service.redis_url.get_secret_value() == "redis://redis_url"
    assert service.api_token is not None
    assert service.api_token.get_secret_value() == "redis://api_token"
    assert indexer.sql_url is not None
    assert indexer.sql_url.get_secret_value() == "redis://sql_url"
    assert not any("redis://" in shown for shown in (repr(service), repr(indexer), repr(service.cluster_access)))


def test_origins_are_separated_by_commas(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("SHOP_DIRECTORY_CORS_ORIGINS", "https://a.example, https://b.example,")
    assert Settings.load().cors_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("REQUEST_TIMEOUT", "0", "SHOP_DIRECTORY_REQUEST_TIMEOUT is wrong: it must be seconds, over 0 and up to 60."),
        ("REQUEST_TIMEOUT", "nan", "SHOP_DIRECTORY_REQUEST_TIMEOUT is wrong: it must be seconds, over 0 and up to 60."),
        ("LOG_LEVEL", "loud", "SHOP_DIRECTORY_LOG_LEVEL is wrong: it must be debug, info, warning or error."),
        *(
            (
                "COMMIT",
                wrong,
                "SHOP_DIRECTORY_COMMIT is wrong: it must be the build's commit, 40 hexadecimal digits in lower case.",
            )
            for wrong in ("abc", "a" * 39, "A" * 40, "g" * 40, "a" * 41)
        ),
        *(
            ("BUILT_AT", wrong, "SHOP_DIRECTORY_BUILT_AT is wrong: it must be the build's time, RFC 3339 in UTC.")
            for wrong in ("2026-11-21", "2026-11-21T09:30:00+01:00", "2026-13-21T09:30:00Z", "now")
        ),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_must_be(
    bare: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    bare.setenv(f"SHOP_DIRECTORY_{name}", value)
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert (str(raised.value), raised.value.__cause__) == (message, None)
