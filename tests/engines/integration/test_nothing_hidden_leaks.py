"""Not a byte of a hidden shop is in an index, its files, the log or the output of either engine.

Every field of the hidden shops holds a canary. The same search finds the same canaries once their shops are public, so
that a search that sees nothing can't pass for an index that holds nothing.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import tantivy
from opensearchpy import OpenSearch
from typer.testing import CliRunner

from index_mappings.documents import DOCUMENTS, Form
from index_mappings.embedded import STORED_COLUMN, columns, index_directory
from index_mappings.opensearch import cluster_fields
from indexer.__main__ import index
from indexer.sinks.embedded.sink import EmbeddedSink
from tests.engines.conftest import OpenSearchLocation
from tests.support.catalogues import (
    coupon,
    offer,
    policy,
    program,
    redirect,
    shipping,
    shop,
    trust,
    write_catalogue_directory,
)

CANARY: Final = "zqcanary"
EVERYTHING: Final = 10_000


def _hidden(kind: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    mark = f"{CANARY}{kind}"
    return {
        **shop(f"{mark}name", f"{mark}domain.internal", id=f"{mark}id", popularity=0.5),
        "aliases": [f"{mark}alias", f"Two {mark}words"],
        "categories": [{"slug": f"{mark}slug", "name": f"{mark}category"}],
        "checkout_hosts": [f"{mark}checkout.internal"],
        "logo": f"https://{mark}domain.internal/{mark}logo.svg",
        "source": f"{mark}source",
        **fields,
    }


def _world() -> list[dict[str, Any]]:
    loser = "https://zqcanaryloserdomain@www.shown.internal:443/zqcanaryloserdomain"
    return [
        shop("Shown", "shown.internal", id="s1", popularity=1),
        shop("Known", "known.internal", id="s2", version=2),
        _hidden("review", visibility="under_review"),
        _hidden("removed", visibility="removed"),
        _hidden("loser", domain=loser),
        # It was public once: the newer record hides it.
        _hidden("older", id="zqcanarytwice", version=1),
        _hidden("newer", id="zqcanarytwice", version=2, visibility="removed"),
    ]


def _related_records(mark: str, owner: str, domain: str) -> dict[str, list[dict[str, Any]]]:
    """A record of each type that belongs to a shop, with a canary in every field that holds free text."""
    url = f"https://{domain}/{mark}url"
    template = f"https://{mark}net.internal/{mark}template?to={{url}}"
    program_texts = {"program_id": f"{mark}program", "commission_stated": f"{mark}commission"}
    return {
        "coupons": [
            coupon(f"{mark}code", owner, id=f"{mark}coupon", title=f"{mark}couponTitle", source=f"{mark}couponSource")
        ],
        "offers": [offer(f"{mark}offer", owner, title=f"{mark}offertitle", url=url)],
        "shipping": [shipping(owner, destinations=["EU"], delivery_time={"as_stated": f"{mark}delivery"})],
        "policies": [
            policy(owner, "returns", "AT", as_stated=f"{mark}returns", source=f"{mark}policysource"),
            policy(owner, "payment_methods", methods=[f"{mark}method"]),
        ],
        "trust": [
            trust(owner, "registrar", f"{mark}registrar", source=f"{mark}trustsource"),
            trust(owner, "payment_methods", [f"{mark}payment"]),
        ],
        "affiliate_programs": [
            program(
                owner,
                f"{mark}network",
                url_template=template,
                network_hosts=[f"{mark}net.internal"],
                disclosure=f"{mark}disclosure",
                **program_texts,
            )
        ],
        "redirects": [
            redirect(domain, "shown.internal", source=f"{mark}redirectsource"),
            redirect("shown.internal", domain, source=f"{mark}backsource"),
        ],
    }


def _named(slug: str) -> dict[str, Any]:
    """A line of `categories` with a canary of its own in every field that holds text."""
    names = {"de": f"{slug}german", "ja": f"{slug} 本"}
    return {"slug": slug, "name": f"{slug}display", "names": names, "synonyms": [f"{slug}synonym"]}


def _catalogue(*, public: bool) -> dict[str, list[dict[str, Any]]]:
    shops = _all_public() if public else _world()
    found: dict[str, list[dict[str, Any]]] = {"shops": shops}
    # The loser's domain is a public shop's: a redirect from there is nothing of the loser's.
    owners = {line["id"]: f"{CANARY}lost.internal" if "@" in line["domain"] else line["domain"] for line in shops[2:]}
    for number, (owner, domain) in enumerate(owners.items()):
        for kind, lines in _related_records(f"{CANARY}b{number}", owner, domain).items():
            found.setdefault(kind, []).extend(lines)
    found["categories"] = [
        *(_named(category["slug"]) for line in shops[2:] for category in line["categories"]),
        *([] if public else [_named(f"{CANARY}uncarried")]),
    ]
    # Two of the hidden shops have one slug.
    found["categories"] = list({line["slug"]: line for line in found["categories"]}.values())
    # It belonged to a public shop once, and the newer record moves it to a hidden one.
    moved = coupon(f"{CANARY}moved", shops[0]["id"], id="moved", version=1)
    found["coupons"] += [] if public else [moved, {**moved, "shop_id": shops[2]["id"], "version": 2}]
    return found


def _all_public() -> list[dict[str, Any]]:
    public = [{**line, "visibility": "public"} for line in _world()]
    domains = ["shown.internal", *(f"d{number}.internal" for number in range(1, len(public)))]
    return [
        {**line, "id": f"s{number}", "domain": domain}
        for number, (line, domain) in enumerate(zip(public, domains, strict=True))
    ]


def _build(
    folder: Path,
    catalogue: Mapping[str, list[dict[str, Any]]],
    caplog: pytest.LogCaptureFixture,
    environment: Mapping[str, str],
) -> str:
    """Build as an operator does; returns all output, the log of every level included."""
    path = write_catalogue_directory(folder / "catalogue", **catalogue)
    caplog.set_level(logging.DEBUG)
    done = CliRunner().invoke(index, ["build", "--catalogue", str(path), "--json"], env=environment)
    assert done.exit_code == 0, done.output
    return f"{done.output}\n{caplog.text}"


# Every text of a related record that may be public is found when it is.
PUBLIC_TEXTS: Final = (
    "coupon", "code", "couponTitle", "couponSource", "offer", "offertitle", "url", "delivery", "registrar",
    "trustsource", "payment", "network", "net.internal", "template", "program", "commission", "disclosure",
    "redirectsource", "backsource",
)  # fmt: skip


CATEGORY_TEXTS: Final = ("display", "german", "synonym")


def _unseen(canaries: set[str]) -> list[str]:
    """Texts of the first hidden shop's related records that a search for canaries does not see."""
    everything = "\n".join(canaries)
    return [text for text in PUBLIC_TEXTS if f"{CANARY}b0{text}" not in everything]


def _embedded_terms(root: Path, generation: str) -> Iterator[str]:
    for kind in DOCUMENTS:
        searcher = tantivy.Index.open(str(index_directory(root, generation, kind))).searcher()
        for column in columns(kind):
            if column.form is Form.WHOLE:
                continue  # a number holds no text
            yield from (term for term, _ in searcher.terms_with_prefix(column.name, ""))
        found = searcher.search(tantivy.Query.all_query(), limit=EVERYTHING)
        assert len(found.hits) == searcher.num_docs
        yield from (bytes(searcher.doc(address)[STORED_COLUMN][0]).decode() for _, address in found.hits)


def _embedded_canaries(root: Path) -> set[str]:
    """Where a canary is: files by their bytes, and terms and documents as the engine reads them."""
    live = EmbeddedSink(root).live()
    assert live is not None
    terms = list(_embedded_terms(root, live.generation))
    assert {"shown", "shown.internal", "s1"} & {*terms}
    files = {path.name for path in root.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes().lower()}
    return files | {term for term in terms if CANARY in term.lower()}


def _opensearch_canaries(client: OpenSearch, prefix: str) -> set[str]:
    """Where a canary is: documents, mappings and settings as they are read, and the terms of every indexed field."""
    names = list(client.indices.get(index=f"{prefix}-*"))
    assert len(names) == len(DOCUMENTS) + 2  # the stamp, and the files of the typeahead
    everything = client.search(index=f"{prefix}-*", body={"query": {"match_all": {}}, "size": EVERYTHING})
    assert everything["hits"]["total"]["value"] == len(everything["hits"]["hits"])
    found = {json.dumps(hit) for hit in everything["hits"]["hits"]}
    found.add(json.dumps(client.indices.get(index=f"{prefix}-*")))
    for kind, document in DOCUMENTS.items():
        for field in cluster_fields(document):
            found |= set(_opensearch_terms(client, f"{prefix}-{kind}", field.name, sortable=field.sortable))
    return {text for text in found if CANARY in text.lower()}


def _opensearch_terms(client: OpenSearch, alias: str, field: str, *, sortable: bool) -> Iterator[str]:
    if sortable:
        body = {"size": 0, "aggs": {"all": {"terms": {"field": field, "size": EVERYTHING}}}}
        answer = client.search(index=alias, body=body)["aggregations"]["all"]
        assert answer["sum_other_doc_count"] == 0
        yield from (f"{alias}.{field}: {bucket['key']}" for bucket in answer["buckets"])
        return
    mapped = client.indices.get_mapping(index=alias).popitem()[1]["mappings"]["properties"][field]
    if mapped["type"] == "keyword" and mapped.get("index", True):
        # No API lists the terms of such a field: a wildcard goes through all of them.
        wildcard = {"wildcard": {field: {"value": f"*{CANARY}*", "case_insensitive": True}}}
        if client.count(index=alias, body={"query": wildcard})["count"]:
            yield f"{alias}.{field}: {CANARY}"


@pytest.fixture
def opensearch_environment(opensearch_location: OpenSearchLocation) -> dict[str, str]:
    return {
        "SHOP_DIRECTORY_ENGINE": "opensearch",
        "SHOP_DIRECTORY_OPENSEARCH_URLS": opensearch_location.url,
        "SHOP_DIRECTORY_INDEX_PREFIX": opensearch_location.prefix,
    }


@pytest.mark.rule("V1", "V1.silent", "V1.dependents")
@pytest.mark.parametrize("engine", ["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def test_no_canary_is_in_the_index_the_log_or_the_output(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "index"
    environment = {"SHOP_DIRECTORY_ENGINE": "embedded", "SHOP_DIRECTORY_DATA_DIR": str(root)}
    if engine == "opensearch":
        environment = request.getfixturevalue("opensearch_environment")
    output = _build(tmp_path, _catalogue(public=False), caplog, environment)
    if engine == "opensearch":
        client = request.getfixturevalue("client")
        assert _opensearch_canaries(client, environment["SHOP_DIRECTORY_INDEX_PREFIX"]) == set()
    else:
        assert _embedded_canaries(root) == set()
    assert CANARY not in output.lower()
    assert '"lost_domain": 1' in output


@pytest.mark.rule("V1.silent")
def test_the_search_of_the_embedded_index_sees_canaries_that_are_public(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "index"
    _build(tmp_path, _catalogue(public=True), caplog, {"SHOP_DIRECTORY_DATA_DIR": str(root)})
    canaries = _embedded_canaries(root)
    assert {f"{CANARY}reviewname", f"{CANARY}loseralias", f"{CANARY}removedslug"} <= canaries
    assert any(f'"name":"{CANARY}oldername"' in canary for canary in canaries)
    assert all(any(f"{CANARY}reviewslug{text}" in canary for canary in canaries) for text in CATEGORY_TEXTS)
    assert any(canary.endswith(".store") for canary in canaries)
    assert _unseen(canaries) == []


@pytest.mark.opensearch
@pytest.mark.rule("V1.silent")
def test_the_search_of_opensearch_sees_canaries_that_are_public(
    opensearch_environment: dict[str, str], client: OpenSearch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = opensearch_environment["SHOP_DIRECTORY_INDEX_PREFIX"]
    _build(tmp_path, _catalogue(public=True), caplog, opensearch_environment)
    canaries = _opensearch_canaries(client, prefix)
    fields = {canary.removeprefix(f"{prefix}-").partition(":")[0] for canary in canaries}
    assert {"shops.full", "shops.other_keys", "shops.words"} <= fields
    assert {"shops.categories", "shops.infixes_suffixes", "categories.id"} <= fields
    assert {"coupons.id", "coupons.folded_code", "offers.id"} <= fields
    assert _unseen(canaries) == []
    assert any(f'"name": "{CANARY}oldername"' in canary for canary in canaries)
    assert all(any(f"{CANARY}reviewslug{text}" in canary for canary in canaries) for text in CATEGORY_TEXTS)
