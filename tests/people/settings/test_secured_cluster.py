"""A cluster behind TLS and passwords, and docs/opensearch-security.md, whose roles grant what its tables name."""

import fnmatch
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP
from index_mappings.opensearch import TYPEAHEAD
from indexer.__main__ import index
from service.app import create_app
from service.settings.service import Settings
from shop_directory.settings.locations import LocationSettings
from tests.engines.conftest import OpenSearchLocation, opensearch_location
from tests.support.callers import issue
from tests.support.catalogues import coupon, shop, write_catalogue_directory
from tests.support.real.secured import Asked, Authority, SecuredNode, secured
from tests.support.real.sources import REPOSITORY
from tests.support.served import Reply, get, post, served, until_ready

SIDES: Final = ("service", "indexer")

_PAGE: Final = (REPOSITORY / "docs" / "opensearch-security.md").read_text(encoding="utf-8")


def requests(side: str) -> set[str]:
    return {request for request, _ in _rows(side)}


def actions(side: str) -> set[str]:
    return {action for _, action in _rows(side)}


def role(side: str) -> dict[str, Any]:
    (found,) = re.findall(r"```json\n(.*?)```", _section(side), re.DOTALL)
    read: dict[str, Any] = json.loads(found)
    return read


def kind_of(asked: Asked, prefix: str) -> str:
    """What kind of request it is, as the page writes it; a name that is not of the prefix stays as it is."""
    path = asked.path.partition("?")[0].replace("%2C", ",").replace("%2A", "*")
    name = rf"{re.escape(prefix)}-[a-z0-9*-]+"
    path = re.sub(rf"/{name}(,{name})*(?=/|$)", "/<index>", path)
    path = re.sub(r"/_doc/[a-z0-9-]+$", "/_doc/<id>", path)
    path = re.sub(r"/_tasks/[A-Za-z0-9_-]+:[0-9]+$", "/_tasks/<id>", path.replace("%3A", ":"))
    return f"{asked.method} {re.sub(r'/_settings/[a-z.]+$', '/_settings/<name>', path)}"


def indices_in(asked: Asked) -> list[str]:
    """The indices that a body names, of requests that have none in their path."""
    if asked.path.startswith("/_msearch"):
        lines: list[Any] = [json.loads(line) for line in asked.body.splitlines()]
        return [line["index"] for line in lines[::2]]
    if asked.path.startswith("/_mget"):
        return [one["_index"] for one in json.loads(asked.body)["docs"]]
    if asked.path.startswith("/_aliases"):
        moved = [change for action in json.loads(asked.body)["actions"] for change in action.values()]
        return [change[name] for change in moved for name in ("index", "alias")]
    return []


def _rows(side: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| `([A-Z]+ /[^`]*)` \| `([^`]+)` \|$", _section(side), re.MULTILINE)


def _section(side: str) -> str:
    return _PAGE.partition(f"### The {side}\n")[2].partition("\n### ")[0]


PASSWORD: Final = "zqcanary pässword"
WRONG: Final = "zqwrongzq"
BACK_SECONDS: Final = 10.0

__all__ = ["opensearch_location"]


@dataclass(frozen=True, slots=True)
class World:
    """A TLS proxy in front of the cluster, who signed its certificate, and a catalogue."""

    transport: SecuredNode
    authority: Authority
    location: OpenSearchLocation
    folder: Path

    def settings(self, **changed: str) -> dict[str, str]:
        (self.folder / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        stated = {
            "ENGINE": "opensearch",
            "OPENSEARCH_URLS": self.transport.url(),
            "OPENSEARCH_USER": "writer",
            "OPENSEARCH_PASSWORD_FILE": str(self.folder / "password"),
            "OPENSEARCH_CA_FILE": str(self.authority.file),
            "INDEX_PREFIX": self.location.prefix,
            "STATE_DIR": str(self.folder / "state"),
            "TOKEN_FILE": str(self.folder / "tokens.sqlite"),
            "REPORTS_FILE": str(self.folder / "reports.sqlite"),
            **changed,
        }
        return {f"SHOP_DIRECTORY_{name}": value for name, value in stated.items()}

    def indexing(self, *arguments: str, **changed: str) -> Result:
        return CliRunner().invoke(index, list(arguments), env=self.settings(**changed))

    def build(self, **changed: str) -> Result:
        return self.indexing("build", "--catalogue", str(self.folder / "catalogue"), "--wait", "1", **changed)


@pytest.fixture
def world(opensearch_location: OpenSearchLocation, tmp_path: Path) -> Iterator[World]:
    """Nothing is published; the proxy's certificate is for localhost."""
    write_catalogue_directory(
        tmp_path / "catalogue",
        shops=[shop("Lumen", "lumen.internal", id="lumen"), shop("Larch", "larch.internal", id="larch")],
        coupons=[coupon("SAVE", "lumen"), coupon("SAVE", "larch", id="c2")],
    )
    authority = Authority(tmp_path)
    passwords = {"writer": PASSWORD, "reader": PASSWORD}
    with secured(opensearch_location.url, authority.issue("localhost"), **passwords) as transport:
        yield World(transport, authority, opensearch_location, tmp_path)


def _service(world: World, bare: pytest.MonkeyPatch, **changed: str) -> Settings:
    with bare.context() as environment:
        for name, value in world.settings(OPENSEARCH_USER="reader", **changed).items():
            environment.setenv(name, value)
        return Settings.load()


def _asked_with(base: str, token: str) -> list[Reply]:
    return [
        post(base, "/tool/get_trust", {"shop_domain": "lumen.internal"}, x_api_token=token),
        post(base, "/tool/resolve_conflict", {"from_shop_id": "lumen", "to_shop_id": "larch"}, x_api_token=token),
        post(base, "/tool/resolve_conflict", {"from_shop_id": "lumen"}, x_api_token=token),
        post(
            base,
            "/tool/report_code",
            {"shop_domain": "lumen.internal", "code": "SAVE", "reason": "invalid"},
            x_api_token=token,
        ),
        post(base, "/tool/monetize_offer", {"offer_id": "none"}, x_api_token=token),
    ]


def _asked_of_all(base: str) -> list[Reply]:
    return [
        get(base, "/ready"),
        get(base, "/suggest?q=lum"),
        post(base, "/tool/find_shop", {"query": "lumen"}),
        post(base, "/tool/find_shop", {"query": "no such name"}),
        post(base, "/tool/list_categories", {}),
        post(base, "/tool/get_shop", {"shop_domain": "larch.internal"}),
        post(base, "/tool/list_coupons", {}),
        post(base, "/tool/get_shipping_policy", {"shop_domain": "lumen.internal"}),
        post(base, "/tool/resolve_checkout_url", {"offer_id": "none"}),
        get(base, "/api/ops/state"),
        get(base, "/metrics/resources"),
    ]


def _strangers(world: World, side: str) -> list[str]:
    """What was asked that the page of roles does not say, or about what is not of the prefix."""
    prefix, said = world.location.prefix, requests(side)
    kinds = {kind_of(asked, prefix) for asked in world.transport.asked} - said
    return [
        *sorted(kinds),
        *(name for asked in world.transport.asked for name in indices_in(asked) if prefix not in name),
    ]


@pytest.mark.opensearch
def test_build_follow_and_serve_through_tls_with_passwords_and_the_service_only_reads(
    world: World, bare: pytest.MonkeyPatch
) -> None:
    built = world.build()
    assert (built.exit_code, PASSWORD in built.output) == (0, False)
    record = shop("Lumina", "lumina.internal", id="lumina")
    change = {"type": "shops", "op": "upsert", "record": record, "version": 2}
    (world.folder / "changes.ndjson").write_text(json.dumps(change) + "\n")
    followed = world.indexing("follow", "--changes", str(world.folder / "changes.ndjson"), "--once")
    assert (followed.exit_code, "1 changes applied" in followed.stdout) == (0, True), followed.output
    assert {asked.user for asked in world.transport.asked} == {"writer"}
    assert _strangers(world, "indexer") == []
    del world.transport.asked[:]
    with served(create_app(_service(world, bare))) as base:
        until_ready(base)
        replies = [*_asked_of_all(base), *_asked_with(base, issue(world.folder / "tokens.sqlite").text)]
        found = post(base, "/tool/find_shop", {"query": "lum"}).json
    assert [found["name"] for found in found["results"]] == ["Lumen", "Lumina"]
    assert [reply.status for reply in replies] == [*[200] * 8, 404, *[200] * 6, 404]
    assert {asked.user for asked in world.transport.asked} == {"reader"}
    assert _strangers(world, "service") == []
    # The page says of the service no more than it does.
    assert {kind_of(asked, world.location.prefix) for asked in world.transport.asked} == requests("service")


@pytest.mark.opensearch
@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ("authority", "SSLError, a certificate that is not trusted or not for this host"),
        ("host", "SSLError, a certificate that is not trusted or not for this host"),
        ("expired", "SSLError, a certificate that is not trusted or not for this host"),
        ("password", "AuthenticationException, a wrong user or password"),
    ],
)
def test_refused_access_and_wrong_certificates_are_reported_by_name_without_secrets(
    world: World, bare: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: str, cause: str
) -> None:
    assert world.build().exit_code == 0
    changed = {}
    with secured(world.location.url, world.authority.issue("localhost", days=-1), writer=PASSWORD) as expired:
        match wrong:
            case "authority":
                changed["OPENSEARCH_CA_FILE"] = str(Authority(world.folder, "other").file)
            case "host":
                changed["OPENSEARCH_URLS"] = world.transport.url("127.0.0.1")
            case "expired":
                changed["OPENSEARCH_URLS"] = expired.url()
            case _:
                world.transport.passwords.update(writer=WRONG, reader=WRONG)
        asked = len(world.transport.asked)
        built = world.build(**changed)
        with served(create_app(_service(world, bare, **changed))) as base:
            replies = _asked_of_all(base)[:-2]
        assert len(world.transport.asked) == asked
        assert expired.asked == []
    assert (built.exit_code, built.stdout) == (3, "")
    assert built.stderr.splitlines()[-1] == f"Nothing was published: the cluster does not answer: {cause}."
    assert [(reply.status, reply.json["code"]) for reply in replies] == [
        (503, "not_ready"),
        *[(503, "backend_unavailable")] * (len(replies) - 1),
    ]
    assert cause.partition(",")[0] in caplog.text
    said = built.output + caplog.text + "".join(reply.body.decode() for reply in replies)
    assert not any(secret in said for secret in ("zqcanary", WRONG, "pässword", "Basic "))


@pytest.mark.opensearch
def test_a_password_that_changes_is_a_failure_in_time_and_passes_when_it_is_right_again(
    world: World, bare: pytest.MonkeyPatch
) -> None:
    assert world.build().exit_code == 0
    with served(create_app(_service(world, bare))) as base:
        before = post(base, "/tool/find_shop", {"query": "lumen"})
        assert before.status == 200
        for password, status in ((WRONG, 503), (PASSWORD, 200)):
            world.transport.passwords["reader"] = password
            deadline = time.monotonic() + BACK_SECONDS
            answer = post(base, "/tool/find_shop", {"query": "lumen"})
            while answer.status != status:
                assert answer.status in {200, 503}
                assert time.monotonic() < deadline
                time.sleep(0.1)
                answer = post(base, "/tool/find_shop", {"query": "lumen"})
        assert answer.body == before.body


@pytest.mark.opensearch
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_without_verification_every_server_is_trusted_and_a_warning_says_so(
    world: World, bare: pytest.MonkeyPatch
) -> None:
    changed = {"OPENSEARCH_CA_FILE": str(Authority(world.folder, "other").file), "OPENSEARCH_VERIFY": "false"}
    built = world.build(**changed)
    assert built.exit_code == 0
    assert built.stderr.startswith("SHOP_DIRECTORY_OPENSEARCH_VERIFY is false: anyone ")
    with served(create_app(_service(world, bare, **changed))) as base:
        assert get(base, "/ready").status == 200


@pytest.mark.opensearch
@pytest.mark.parametrize(("stated", "replicas"), [("auto", 0), ("1", 1)])
def test_replicas_are_as_stated(world: World, stated: str, replicas: int) -> None:
    built = world.build(OPENSEARCH_REPLICAS=stated)
    created = [json.loads(asked.body) for asked in world.transport.asked if asked.method == "PUT" and asked.body]
    replica_counts = {body["settings"].get("number_of_replicas") for body in created if "settings" in body}
    assert built.exit_code == 0
    assert replica_counts - {None} == {replicas}


PREFIX: Final[str] = LocationSettings.model_fields["index_prefix"].default


@pytest.mark.parametrize("side", SIDES)
def test_a_role_grants_every_action_of_its_table_and_names_none_for_nothing(side: str) -> None:
    granted = {*role(side)["cluster_permissions"], *role(side)["index_permissions"][0]["allowed_actions"]}
    assert [action for action in actions(side) if not any(fnmatch.fnmatch(action, one) for one in granted)] == []


def test_the_services_role_reads_and_does_nothing_else() -> None:
    granted = role("service")
    (of_indices,) = granted["index_permissions"]
    assert all(one.startswith("indices:data/read/") for one in granted["cluster_permissions"])
    assert all(one.startswith("indices:data/read/") for one in of_indices["allowed_actions"])
    assert of_indices["index_patterns"] == [f"{PREFIX}-{kind}-*" for kind in (*DOCUMENTS, STAMP, TYPEAHEAD)]


def test_the_indexers_role_is_bound_to_its_prefix() -> None:
    assert role("indexer")["index_permissions"][0]["index_patterns"] == [f"{PREFIX}-*"]
