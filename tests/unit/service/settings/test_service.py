"""Settings: where they come from, and how a wrong one is reported."""

import pytest

from service.settings.service import Settings
from shop_directory.settings.reading import SettingsError


def test_origins_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DIRECTORY_CORS_ORIGINS", "https://a.example, https://b.example,")
    assert Settings.load().cors_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("REQUEST_TIMEOUT", "0", "SHOP_DIRECTORY_REQUEST_TIMEOUT is wrong: it must be seconds, over 0 and up to 60."),
        ("REQUEST_TIMEOUT", "nan", "SHOP_DIRECTORY_REQUEST_TIMEOUT is wrong: it must be seconds, over 0 and up to 60."),
        (
            "OPENSEARCH_URLS",
            ",",
            (
                "SHOP_DIRECTORY_OPENSEARCH_URLS is wrong: it must be the nodes' http:// or https:// URLs without user "
                "or password, separated by commas."
            ),
        ),
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
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"SHOP_DIRECTORY_{name}", value)
    with pytest.raises(SettingsError) as raised:
        Settings.load()
    assert (str(raised.value), raised.value.__cause__) == (message, None)
