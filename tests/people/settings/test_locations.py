"""Where generations are: both sides read it alike, and what lets others in or read along is refused or reported."""

from pathlib import Path
from typing import Final

import pytest

from indexer.settings import IndexerSettings
from service.settings.service import Settings
from shop_directory.settings.locations import LocationSettings
from shop_directory.settings.reading import SettingsError
from tests.support.real.certificates import Authority

CANARY: Final = "zqcanaryzq"
URLS: Final = (
    "SHOP_DIRECTORY_OPENSEARCH_URLS is wrong: it must be the nodes' http:// or https:// URLs without user or password, "
    "separated by commas."
)
CA: Final = "SHOP_DIRECTORY_OPENSEARCH_CA_FILE is wrong: it must be a file of certificates (PEM) that can be read."
BOTH: Final = "SHOP_DIRECTORY_OPENSEARCH_USER and SHOP_DIRECTORY_OPENSEARCH_PASSWORD go together: set both or none."
SIDES: Final = (Settings, IndexerSettings)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "urls",
    [("http://127.0.0.1:9200",), ("https://one.example", "https://two.example:9201/search"), ("https://[::1]:9200",)],
)
def test_nodes_are_urls_separated_by_commas(
    bare: pytest.MonkeyPatch, side: type[LocationSettings], urls: tuple[str, ...]
) -> None:
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_URLS", " , ".join(urls) + ",")
    assert side.load().opensearch_urls == urls


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("URLS", ",", URLS),
        ("URLS", f"{CANARY}:9200", URLS),
        ("URLS", f"ftp://{CANARY}", URLS),
        ("URLS", "https://", URLS),
        ("URLS", f"https://reader:{CANARY}@one.example", URLS),
        ("URLS", f"https://one.example,https://{CANARY}@two.example", URLS),
        ("URLS", f"https://one.example/?password={CANARY}", URLS),
        ("URLS", f"https://one.example/#{CANARY}", URLS),
        ("URLS", f"https://one.example:{CANARY}", URLS),
        ("URLS", "https://one.example:99999", URLS),
        ("URLS", f"https://[{CANARY}", URLS),
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
)
def test_wrong_nodes_and_wrong_access_are_refused_by_name_without_a_word_of_the_value(
    bare: pytest.MonkeyPatch, side: type[LocationSettings], name: str, value: str, message: str
) -> None:
    bare.setenv(f"SHOP_DIRECTORY_OPENSEARCH_{name}", value)
    with pytest.raises(SettingsError) as raised:
        side.load()
    assert str(raised.value) == message


def test_authorities_are_read_at_the_start(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text(CANARY)
    bare.setenv("SHOP_DIRECTORY_OPENSEARCH_CA_FILE", str(tmp_path / "no.pem"))
    with pytest.raises(SettingsError) as raised:
        IndexerSettings.load()
    assert str(raised.value) == CA
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
        with pytest.raises(SettingsError) as raised:
            IndexerSettings.load()
        assert str(raised.value) == (
            "SHOP_DIRECTORY_OPENSEARCH_REPLICAS is wrong: it must be auto or a whole number from 0 to 20."
        )


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
        return
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert str(raised.value).startswith(message)


def test_broken_json_is_a_wrong_setting_like_any_other(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("SHOP_DIRECTORY_QUOTA_CLASSES", f"{{{CANARY}")
    bare.setenv("SHOP_DIRECTORY_QUOTA_ANONYMOUS", CANARY)
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert str(raised.value) == (
        "SHOP_DIRECTORY_QUOTA_ANONYMOUS is wrong: "
        'it must be JSON such as {"reads": 120, "suggest": 1200, "reports": 0}. '
        "SHOP_DIRECTORY_QUOTA_CLASSES is wrong: "
        "it must be JSON: the class default and others, each with reads, suggest and reports."
    )
