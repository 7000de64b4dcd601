"""The settings of Redis: contradictions are refused by name, and no password is in any printed form."""

from pathlib import Path
from typing import Any, Final

import pytest

from service.redis.access import RedisAccess, RedisAccessError
from service.settings.stores import StoreSettings
from shop_directory.settings.reading import SettingsError
from tests.support.real.certificates import Authority

_URL: Final = "a redis://, rediss:// or unix:// URL, without options other than db"
_SENTINELS: Final = {"sentinels": ("127.0.0.1:26379",), "sentinel_name": "shops"}
_NODES: Final = {"cluster_nodes": ("127.0.0.1:6379",)}
_TLS: Final = "given only with a rediss:// URL"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "http://127.0.0.1"}, f"redis_url must be {_URL}"),
        ({"url": "redis://127.0.0.1:port"}, f"redis_url must be {_URL}"),
        ({"url": "rediss://127.0.0.1?ssl_cert_reqs=none"}, f"redis_url must be {_URL}"),
        ({"url": "unix://"}, f"redis_url must be {_URL}"),
        ({"url": "redis://127.0.0.1/one"}, f"redis_url must be {_URL}; a database is a whole number"),
        ({"url": "redis://a:b@h", "user": "c"}, "redis_user must be given once, in the URL or here"),
        ({"url": "redis://:b@h", "password": "c"}, "redis_password must be given once, in the URL or here"),
        ({"user": "c"}, "redis_password must be given with redis_user"),
        ({"ca_file": Path("ca.pem")}, f"redis_ca_file must be {_TLS}"),
        ({"key_file": Path("key.pem")}, f"redis_key_file must be {_TLS}"),
        (
            {"url": "rediss://h", "key_file": Path("key.pem")},
            "redis_certificate_file must be given with redis_key_file",
        ),
        (
            {"url": "rediss://h", "certificate_file": Path("own.pem")},
            "redis_key_file must be given with redis_certificate_file",
        ),
        (
            {"url": "rediss://h", "ca_file": Path("nowhere.pem")},
            "redis_ca_file must be a readable file of PEM certificates",
        ),
        (
            {"url": "rediss://h", "certificate_file": Path("own.pem"), "key_file": Path("key.pem")},
            "redis_certificate_file must be a readable PEM certificate, and redis_key_file its key",
        ),
        ({"sentinels": ("h:1",)}, "redis_sentinel_name must be what the sentinels call the master, given with them"),
        ({"sentinel_name": "shops"}, "redis_sentinel_name must be given only with redis_sentinels"),
        ({"sentinel_password": "p"}, "redis_sentinel_password must be given only with redis_sentinels"),
        ({**_SENTINELS, "sentinel_user": "u"}, "redis_sentinel_password must be given with redis_sentinel_user"),
        ({**_SENTINELS, **_NODES}, "redis_cluster_nodes must be given without redis_sentinels"),
        ({**_NODES, "url": "redis://h/1"}, "redis_url must be without a database other than 0: a cluster has no other"),
    ],
)
def test_contradicting_settings_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RedisAccessError) as refused:
        RedisAccess(**given)
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["host", "host:", ":6379", "host:none", "host:70000", "u@host:1", "host:1/0", "a b"])
@pytest.mark.parametrize("kind", ["sentinels", "cluster_nodes"])
def test_an_address_is_a_host_and_a_port(kind: str, text: str) -> None:
    given: dict[str, Any] = {kind: ("h:1", text)}
    with pytest.raises(RedisAccessError) as refused:
        RedisAccess(**given)
    assert refused.value.setting == f"redis_{kind}"


def test_the_environment_names_every_part_of_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    own = authority.issue("client")
    secret = tmp_path / "password"
    secret.write_text("zqcanaryzq\n")
    stated = {
        "REDIS_URL": "rediss://ignored",
        "REDIS_USER": "shopdir",
        "REDIS_PASSWORD_FILE": str(secret),
        "REDIS_CA_FILE": str(authority.file),
        "REDIS_CERTIFICATE_FILE": str(own.file),
        "REDIS_KEY_FILE": str(own.key_file),
        "REDIS_SENTINELS": "one:26379, [::1]:26380",
        "REDIS_SENTINEL_NAME": "shops",
        "REDIS_SENTINEL_USER": "asker",
        "REDIS_SENTINEL_PASSWORD": "zqother",
    }
    for name, value in stated.items():
        monkeypatch.setenv(f"SHOP_DIRECTORY_{name}", value)
    access = StoreSettings.load().redis_access
    assert access == RedisAccess(
        "rediss://ignored",
        "shopdir",
        "zqcanaryzq",
        authority.file,
        own.file,
        own.key_file,
        ("one:26379", "[::1]:26380"),
        "shops",
        "asker",
        "zqother",
    )
    assert "zq" not in repr(access)


def test_a_contradiction_in_the_environment_names_the_variable_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DIRECTORY_REDIS_SENTINELS", "zqcanaryzq:26379")
    monkeypatch.setenv("SHOP_DIRECTORY_REDIS_URL", "redis://:zqcanaryzq@h")
    with pytest.raises(SettingsError) as refused:
        StoreSettings.load()
    message = "it must be what the sentinels call the master, given with them."
    assert str(refused.value) == f"SHOP_DIRECTORY_REDIS_SENTINEL_NAME is wrong: {message}"
