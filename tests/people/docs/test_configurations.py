"""The configurations of other programs on the pages, each given to the program that reads it, or to what it asks.

Prometheus is the one that is not there: its scrapes are made as its file says, and read by its own parser.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]  # it says nothing of its types
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from sqlalchemy import text

from service.app import create_app
from service.settings.service import Settings
from tests.people.docs.pages import BY_PATH
from tests.people.docs.shell import commands
from tests.support.real.plugin import NodeFactory
from tests.support.served import get, served
from tests.support.sql_databases import postgres_database_of
from tests.support.worlds import embedded_world

KEY: Final = "the-key-of-the-operators"
_JOB: Final = {"job_name", "metrics_path", "static_configs", "http_headers"}


def blocks(page: str, language: str) -> list[str]:
    return [block.text for block in BY_PATH[page].blocks if block.language == language]


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("operated")
    settings = Settings(data_dir=embedded_world(folder), ops_key=KEY, request_timeout=10.0)
    with served(create_app(settings)) as base:
        yield base


def test_each_scrape_of_metrics_md_finds_metrics_and_only_with_the_key(operated: str, tmp_path: Path) -> None:
    (page,) = blocks("docs/metrics.md", "yaml")
    (tmp_path / "ops_key").write_text(KEY, encoding="utf-8")
    scrapes: list[set[str]] = []
    for job in yaml.safe_load(page)["scrape_configs"]:
        assert set(job) <= _JOB
        assert job["static_configs"] == [{"targets": ["directory.internal:8080"]}]
        ((name, header),) = job["http_headers"].items()
        assert header == {"files": ["/run/secrets/ops_key"]}
        path = job.get("metrics_path", "/metrics")  # where Prometheus looks by default
        value = (tmp_path / "ops_key").read_text(encoding="utf-8").strip()
        scraped = get(operated, path, **{name: value})
        assert (scraped.status, get(operated, path).status) == (200, 401)
        scrapes.append({family.name for family in text_string_to_metric_families(scraped.body.decode())})
    scraped_first, scraped_second = scrapes
    assert "shopdir_engine_up" in scraped_first
    assert "shopdir_resource_accounts_known" in scraped_second


def test_a_node_of_opensearch_starts_with_the_settings_of_operations_md(opensearch_node: NodeFactory) -> None:
    (page,) = blocks("docs/operations.md", "yaml")
    stated: dict[str, Any] = yaml.safe_load(page)
    names = ["search-1", "search-2", "search-3"]
    assert (stated["discovery.seed_hosts"], stated["cluster.initial_cluster_manager_nodes"]) == (names, names)
    # One node on loopback stands for three machines; it refuses any setting that OpenSearch does not know.
    here = {
        **{name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in stated.items()},
        "network.host": "127.0.0.1",
        "discovery.type": "zen",
        "discovery.seed_hosts": "127.0.0.1",
        "cluster.initial_cluster_manager_nodes": "search-1",
    }
    node = opensearch_node(settings=here)
    node.start()
    address = urlsplit(node.url)
    health = get(node.url, "/_cluster/health").json
    assert (health["cluster_name"], health["number_of_nodes"], address.hostname) == ("shop-directory", 1, "127.0.0.1")
    # What the page forbids to come into being by itself, and what it leaves alone.
    assert (
        get(node.url, "/_cluster/settings?include_defaults=true&flat_settings=true").json["defaults"][
            "action.auto_create_index"
        ]
        == "-shop-directory-*,+*"
    )


def test_the_users_of_redis_md_can_be_made(redis_url: str) -> None:
    given = [command for block in blocks("docs/redis.md", "redis") for command in commands(block)]
    assert [command.split()[:3] for command in given] == [["ACL", "SETUSER", "shopdir"]] * 2
    with Redis.from_url(redis_url, decode_responses=True) as client:
        try:
            for command in given:
                words = shlex.split(command.replace("\\\n", " "))
                # The second is for a sentinel, which has one command more than the server has.
                answer = client.execute_command(*(word for word in words if word != "+sentinel|masters"))
                assert answer == "OK"
        finally:
            client.acl_deluser("shopdir")


@pytest.mark.postgres
def test_the_trigger_of_sql_source_md_numbers_every_insert_and_update(postgres_url: str) -> None:
    (page,) = blocks("docs/sql-source.md", "sql")
    with postgres_database_of(postgres_url) as database:
        database.run(text("CREATE TABLE shops (id text PRIMARY KEY, name text, row_version bigint)"))
        with database.engine.begin() as connection:
            connection.exec_driver_sql(page)
        database.run(
            text("INSERT INTO shops (id, name) VALUES ('a', 'A'), ('b', 'B')"),
            text("UPDATE shops SET name = 'AA' WHERE id = 'a'"),
        )
        with database.engine.connect() as connection:
            rows = connection.execute(text("SELECT id, row_version FROM shops ORDER BY id")).all()
        database.engine.dispose()
    assert [tuple(row) for row in rows] == [("a", 3), ("b", 2)]
