"""Settings are read from the environment and secret files, shown without secrets; where generations are."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from pydantic import Field, SecretStr
from typer.testing import CliRunner, Result

from indexer.settings import IndexerSettings
from service.settings.service import Settings
from shop_directory.command_line import command_line
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import (
    FILE,
    MAX_SECRET_BYTES,
    EnvironmentSettings,
    SettingsError,
    installed_sides,
    is_secret,
    must_be,
    settings_page,
    variable,
)
from tests.support.real.secured import Authority
from tests.support.real.sources import REPOSITORY

CANARY: Final = "zqcanaryzq"
KEY: Final = "SHOP_DIRECTORY_KEY"


class Small(EnvironmentSettings):
    key: Annotated[SecretStr | None, Field(min_length=3, description="at least 3 characters")] = None
    most: Annotated[int, Field(description="a whole number")] = 9
    least: Annotated[int, Field(description="a whole number")] = 1

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.least > self.most:
            yield f"{variable('least')} is over {variable('most')}."


def _wrong(kind: type[EnvironmentSettings] = Small, **given: Any) -> str:  # noqa: ANN401 - any setting
    with pytest.raises(SettingsError) as raised:
        kind.load(**given)
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


# Values that are refused with what docs/settings.md says that the setting must be.
WRONG: Final[Mapping[str, tuple[str, ...]]] = {
    "REQUEST_TIMEOUT": ("0", "nan"),
    "LOG_LEVEL": ("loud",),
    "COMMIT": ("abc", "a" * 39, "A" * 40, "g" * 40, "a" * 41),
    "BUILT_AT": ("2026-11-21", "2026-11-21T09:30:00+01:00", "2026-13-21T09:30:00Z", "now"),
    "QUOTA_ANONYMOUS": (CANARY,),
    "QUOTA_CLASSES": (f"{{{CANARY}",),
    "QUOTA_NETWORKS": (
        "hosted=192.0.2.0/24",
        '{"hosted": {"ranges": ["192.0.2.1/24"]}}',
        '{"hosted": {"ranges": ["example.org"]}}',
        '{"a": {"ranges": ["192.0.2.0/24"]}, "b": {"ranges": ["::ffff:192.0.2.0/120"]}}',
        '{"Hosted": {"ranges": ["192.0.2.0/24"]}}',
        '{"hosted": {"ranges": ["192.0.2.0/24"], "class": "default"}}',
    ),
    "TRUSTED_PROXIES": ("127.0.0.1,example.org", "10.0.0.1/8"),
    "OAUTH_ISSUER": ("http://login.example",),
    "OAUTH_JWKS_URI": ("http://127.0.0.1.example/jwks",),
    "OAUTH_ALGORITHMS": ("RS256,HS256", "none"),
    "OAUTH_SOURCE_KEY": ("x" * 31,),
    "SITE_NAME": (" ",),
    "SITE_TAGLINE": ("x" * 121,),
    "SITE_LOGO": ("/nowhere/logo.svg", __file__),
    "SITE_SOURCES": ("/nowhere/SOURCES.md", "/bin/sh"),
    "SITE_IMPRINT": ("http://house.example",),
    "SITE_CONTACT": ("javascript:alert(1)",),
    "SITE_PRIVACY": ('https://house.example/"><script>',),
    "SITE_ACCENT": ("#0d6655", "#0d6655,green"),
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *(
            (name, value, f"is wrong: it must be {must_be(Settings.model_fields[name.lower()])}.")
            for name, values in WRONG.items()
            for value in values
        ),
        (
            "QUOTA_NETWORKS",
            '{"hosted": {"ranges": ["192.0.2.0/24"], "quota_class": "gone"}}',
            "names a class that SHOP_DIRECTORY_QUOTA_CLASSES does not have.",
        ),
        *(
            (
                "SITE_ACCENT",
                colours,
                (
                    f"is wrong: the colour of the {theme} theme has a contrast of {least} to its backgrounds and needs "
                    f"4.5; a {direction} one has more."
                ),
            )
            for colours, theme, least, direction in (
                ("#ffcc00,#6fd0b5", "light", "1.3", "darker"),
                ("#0d6655,#0d6655", "dark", "2.3", "lighter"),
            )
        ),
        ("SITE_SITEMAP", "true", "is true, so SHOP_DIRECTORY_PUBLIC_URL must be set, too."),
        (
            "OAUTH_SCOPE_CLASSES",
            '{"shops:partner": "gone"}',
            "names a class that SHOP_DIRECTORY_QUOTA_CLASSES does not have.",
        ),
        (
            "OAUTH_ISSUER",
            "https://login.example",
            " SHOP_DIRECTORY_OAUTH_ISSUER ".join(
                f"is set, so SHOP_DIRECTORY_{name} must be, too."
                for name in ("OAUTH_JWKS_URI", "OAUTH_SOURCE_KEY", "PUBLIC_URL")
            ),
        ),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_must_be(
    bare: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    bare.setenv(f"SHOP_DIRECTORY_{name}", value)
    assert _wrong(Settings) == f"SHOP_DIRECTORY_{name} {message}"


def _run(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(
        command_line(), list(arguments), env={f"SHOP_DIRECTORY_{name}": value for name, value in variables.items()}
    )


def _secrets(folder: Path) -> Mapping[str, str]:
    (folder / "url").write_text(f"sqlite:///{CANARY}?password={CANARY}\n")
    return {
        "REDIS_URL": f"redis://reader:{CANARY}@one.example/0",
        "SQL_URL_FILE": str(folder / "url"),
        "API_TOKEN": CANARY,
        "OPENSEARCH_USER": "reader",
        "OPENSEARCH_PASSWORD": CANARY,
    }


def test_config_prints_what_is_in_effect_on_both_sides_and_no_secret(tmp_path: Path) -> None:
    done = _run("config", "--json", PORT="9001", COMMIT="", **_secrets(tmp_path))
    printed = json.loads(done.stdout)
    assert (done.exit_code, done.stderr, list(printed)) == (0, "", ["indexer", "service"])
    assert CANARY not in done.output
    assert {side: [len(printed[side]), len(kind.model_fields)] for side, kind in installed_sides().items()} == {
        side: [len(kind.model_fields)] * 2 for side, kind in installed_sides().items()
    }
    of_service, of_indexer = printed["service"], printed["indexer"]
    hidden = {"value": "(hidden)", "source": "environment"}
    assert of_service["SHOP_DIRECTORY_PORT"] == {"value": 9001, "source": "environment"}
    assert of_service["SHOP_DIRECTORY_COMMIT"] == {"value": None, "source": "default"}
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_USER"] == {"value": "reader", "source": "environment"}
    assert [of_service[f"SHOP_DIRECTORY_{name}"] for name in ("REDIS_URL", "API_TOKEN")] == [hidden, hidden]
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"] == of_indexer["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"]
    assert of_service["SHOP_DIRECTORY_OPENSEARCH_PASSWORD"] == hidden
    assert of_indexer["SHOP_DIRECTORY_SQL_URL"] == {"value": "(hidden)", "source": "file"}
    assert of_indexer["SHOP_DIRECTORY_OPENSEARCH_URLS"] == {"value": ["http://127.0.0.1:9200"], "source": "default"}


def test_config_prints_lines_for_people(tmp_path: Path) -> None:
    done = _run("config", **_secrets(tmp_path), MCP_ALLOWED_HOSTS="one.example,two.example:*")
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert (done.exit_code, CANARY in done.output, lines[0]) == (0, False, ["indexer:"])
    assert ["SHOP_DIRECTORY_SQL_URL", "file", "(hidden)"] in lines
    assert ["SHOP_DIRECTORY_MCP_ALLOWED_HOSTS", "environment", "one.example,two.example:*"] in lines
    assert ["SHOP_DIRECTORY_API_TOKEN", "environment", "(hidden)"] in lines
    assert ["SHOP_DIRECTORY_BUILT_AT", "default"] in lines
    assert ["service:"] in lines


def test_serve_prints_its_settings_with_its_options_and_ends(tmp_path: Path) -> None:
    done = _run("serve", "--print-config", "--port", "9002", HOST="127.0.0.2", **_secrets(tmp_path))
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert (done.exit_code, done.stderr, CANARY in done.output) == (0, "", False)
    assert ["SHOP_DIRECTORY_PORT", "option", "9002"] in lines
    assert ["SHOP_DIRECTORY_HOST", "environment", "127.0.0.2"] in lines
    assert ["SHOP_DIRECTORY_ENGINE", "default", "embedded"] in lines
    assert [name for name, *_ in lines] == [
        f"SHOP_DIRECTORY_{name.upper()}" for name in installed_sides()["service"].model_fields
    ]


@pytest.mark.parametrize("command", [("config",), ("serve",), ("mcp",), ("index", "status"), ("index", "build")])
def test_a_wrong_setting_stops_every_command_by_name(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "password").write_text("")
    done = _run(*command, ENGINE=CANARY, OPENSEARCH_PASSWORD_FILE=str(tmp_path / "password"))
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        (
            "SHOP_DIRECTORY_OPENSEARCH_PASSWORD_FILE is wrong: the file is empty. "
            "SHOP_DIRECTORY_ENGINE is wrong: it must be embedded or opensearch.\n"
        ),
    )


@pytest.mark.parametrize("command", [("token", "list"), ("rechecks", "list")])
def test_a_secret_of_the_stores_comes_from_a_file_in_the_operators_commands_too(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "url").write_text(f"https://{CANARY}")
    wrong = _run(*command, TOKEN_STORE="redis", REPORTS="redis", REDIS_URL_FILE=str(tmp_path / "url"))
    assert (wrong.exit_code, wrong.stdout, CANARY in wrong.stderr) == (2, "", False)
    assert wrong.stderr.startswith("SHOP_DIRECTORY_REDIS_URL")
    both = _run(*command, REDIS_URL="redis://127.0.0.1", REDIS_URL_FILE=str(tmp_path / "url"))
    assert (both.exit_code, both.stdout, both.stderr) == (
        2,
        "",
        "SHOP_DIRECTORY_REDIS_URL and SHOP_DIRECTORY_REDIS_URL_FILE are both set: leave one of them out.\n",
    )


NO_SETTING: Final = "is not a setting and is ignored."
MISSPELT: Final = f"SHOP_DIRECTORY_OPENSEARCH_URL {NO_SETTING} Did you mean SHOP_DIRECTORY_OPENSEARCH_URLS?"


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        ("config --json", {"OPENSEARCH_URL": f"https://{CANARY}"}, [MISSPELT]),
        ("serve --print-config", {"OPENSEARCH_URL": f"https://{CANARY}"}, [MISSPELT]),
        (
            "index status",
            {"OPENSEARCH_URL": CANARY, "OPENSEARCH_USERS": CANARY},
            [MISSPELT, f"SHOP_DIRECTORY_OPENSEARCH_USERS {NO_SETTING} Did you mean SHOP_DIRECTORY_OPENSEARCH_USER?"],
        ),
        # Two letters that are exchanged.
        (
            "serve --print-config",
            {"PROT": "8081", "HSOT": "::1"},
            [
                f"SHOP_DIRECTORY_HSOT {NO_SETTING} Did you mean SHOP_DIRECTORY_HOST?",
                f"SHOP_DIRECTORY_PROT {NO_SETTING} Did you mean SHOP_DIRECTORY_PORT?",
            ],
        ),
        (
            "serve --print-config",
            {"QUUX": "1", "PORT_FILE": "/nowhere", "DEV_DATUM": "1"},
            [
                f"SHOP_DIRECTORY_DEV_DATUM {NO_SETTING}",
                "SHOP_DIRECTORY_PORT_FILE is ignored: only secret settings can be in a file.",
                f"SHOP_DIRECTORY_QUUX {NO_SETTING}",
            ],
        ),
        # The other side's settings, which may be wrong, and where the development data are.
        ("serve --print-config", {"MOST_SHRINK": CANARY, "OPENSEARCH_SHARDS": "0", "SQL_URL_FILE": "/nowhere"}, []),
        ("index status", {"PORT": CANARY}, []),
        ("config", {"DEV_DATA": "/srv/data"}, []),
    ],
)
def test_what_is_no_setting_is_reported_with_the_one_that_is_meant(
    tmp_path: Path, command: str, variables: dict[str, str], said: list[str]
) -> None:
    done = _run(*command.split(), DATA_DIR=str(tmp_path / "index"), **variables)
    # Without an index, its status is a problem.
    assert (done.stderr.splitlines(), done.exit_code) == (said, int(command == "index status"))
    assert CANARY not in done.output


PAGE: Final = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_code_says() -> None:
    assert settings_page(installed_sides()) == PAGE, "write it again by `make settings`"


def test_every_setting_says_what_it_must_be_and_what_it_is_for() -> None:
    silent = [
        f"{side}.{name}"
        for side, kind in installed_sides().items()
        for name, field in kind.model_fields.items()
        if not field.title or not field.title.endswith(".") or not must_be(field) or must_be(field).endswith(".")
    ]
    assert silent == []


def test_what_both_sides_read_is_the_same_setting() -> None:
    service, indexer = (installed_sides()[side].model_fields for side in ("service", "indexer"))
    shared = service.keys() & indexer.keys()
    assert {"engine", "data_dir", "opensearch_urls", "opensearch_password", "index_prefix"} <= shared
    assert [name for name in shared if repr(service[name]) != repr(indexer[name])] == []


NODES: Final = (
    "SHOP_DIRECTORY_OPENSEARCH_URLS is wrong: it must be the nodes' http:// or https:// URLs without user or password, "
    "separated by commas."
)
CA: Final = "SHOP_DIRECTORY_OPENSEARCH_CA_FILE is wrong: it must be a file of certificates (PEM) that can be read."
BOTH: Final = "SHOP_DIRECTORY_OPENSEARCH_USER and SHOP_DIRECTORY_OPENSEARCH_PASSWORD go together: set both or none."


@pytest.mark.parametrize(
    "urls",
    [("http://127.0.0.1:9200",), ("https://one.example", "https://two.example:9201/search"), ("https://[::1]:9200",)],
)
def test_nodes_are_urls_separated_by_commas(bare: pytest.MonkeyPatch, urls: tuple[str, ...]) -> None:
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_URLS", " , ".join(urls) + ",")
    assert LocationSettings.load().opensearch_urls == urls


@pytest.mark.parametrize("side", [Settings, IndexerSettings])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *(
            ("URLS", urls, NODES)
            for urls in (
                ",", f"{CANARY}:9200", f"ftp://{CANARY}", "https://", f"https://reader:{CANARY}@one.example",
                f"https://one.example,https://{CANARY}@two.example", f"https://one.example/?password={CANARY}",
                f"https://one.example/#{CANARY}", f"https://one.example:{CANARY}", "https://one.example:99999",
                f"https://[{CANARY}",
            )
        ),
        ("USER", "reader", BOTH),
        ("PASSWORD", CANARY, BOTH),
        (
            "USER",
            f"{CANARY}:x",
            (
                "SHOP_DIRECTORY_OPENSEARCH_USER is wrong: "
                "it must be a user's name of up to 256 characters, without a colon."
            ),
        ),
        ("CA_FILE", f"/nowhere/{CANARY}", CA),
        ("VERIFY", CANARY, "SHOP_DIRECTORY_OPENSEARCH_VERIFY is wrong: it must be true or false."),
    ],
)  # fmt: skip
def test_wrong_nodes_and_wrong_access_are_refused_by_name_without_a_word_of_the_value(
    bare: pytest.MonkeyPatch, side: type[LocationSettings], name: str, value: str, message: str
) -> None:
    bare.setenv(f"SHOP_DIRECTORY_OPENSEARCH_{name}", value)
    assert _wrong(side) == message


def test_authorities_are_read_at_the_start(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text(CANARY)
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_CA_FILE", str(tmp_path / "no.pem"))
    assert _wrong(IndexerSettings) == CA
    authority = Authority(tmp_path)
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_CA_FILE", str(authority.file))
    assert IndexerSettings.load().cluster_access.ca_file == authority.file


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"URLS": "http://one.example"}, ()),
        ({"URLS": "https://one.example", "USER": "u", "PASSWORD": "p"}, ()),
        ({"URLS": "http://one.example", "VERIFY": "false"}, ()),
        ({"URLS": "https://one.example", "VERIFY": "false"}, ("SHOP_DIRECTORY_OPENSEARCH_VERIFY is false: ",)),
        (
            {"URLS": "https://one.example,http://two.example", "USER": "u", "PASSWORD": "p", "VERIFY": "0"},
            ("SHOP_DIRECTORY_OPENSEARCH_VERIFY is false: ", "SHOP_DIRECTORY_OPENSEARCH_URLS has an http:// URL: "),
        ),
    ],
)
def test_what_lets_others_read_along_is_reported(
    bare: pytest.MonkeyPatch, variables: dict[str, str], message: tuple[str, ...]
) -> None:
    bare.setenv("SHOP_DIRECTORY_ENGINE", "opensearch")
    for name, value in variables.items():
        bare.setenv(f"SHOP_DIRECTORY_OPENSEARCH_{name}", value)
    cautions = tuple(Settings.load().cautions())
    assert len(cautions) == len(message)
    assert all(caution.startswith(begin) for caution, begin in zip(cautions, message, strict=True))
    bare.setenv("SHOP_DIRECTORY_ENGINE", "embedded")
    assert tuple(Settings.load().cautions()) == ()


def test_replicas_are_auto_or_a_number(bare: pytest.MonkeyPatch) -> None:
    found = {}
    for value in ("", "auto", "0", "3"):
        bare.setenv("SHOP_DIRECTORY_OPENSEARCH_REPLICAS", value)
        found[value] = IndexerSettings.load().replicas
    assert found == {"": None, "auto": None, "0": 0, "3": 3}
    for value in ("-1", "21", "1.5", "some"):
        bare.setenv("SHOP_DIRECTORY_OPENSEARCH_REPLICAS", value)
        wrong = "SHOP_DIRECTORY_OPENSEARCH_REPLICAS is wrong: it must be auto or a whole number from 0 to 20."
        assert _wrong(IndexerSettings) == wrong


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"LIMITER": "redis", "REPORTS": "redis"}, None),
        ({"LIMITER": "redis"}, "SHOP_DIRECTORY_WORKERS is over 1, so SHOP_DIRECTORY_REPORTS must be redis: "),
        ({"REPORTS": "redis"}, "SHOP_DIRECTORY_WORKERS is over 1, so SHOP_DIRECTORY_LIMITER must be redis: "),
    ],
)
def test_several_workers_share_nothing_of_one_process(
    bare: pytest.MonkeyPatch, variables: dict[str, str], message: str | None
) -> None:
    bare.setenv("SHOP_DIRECTORY_WORKERS", "2")
    for name, value in variables.items():
        bare.setenv(f"SHOP_DIRECTORY_{name}", value)
    if message is None:
        assert Settings.load().workers == 2
    else:
        assert _wrong(Settings).startswith(message)
