"""A secret that is planted in any tracked file makes the scan fail; the secret's text is not printed."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from service.auth.secrets import new_token_text
from tests.rules.security.secret_scan import NOT_SECRET, Finding, findings, main, tracked

# Put together here, so that this file does not hold what it plants.
AWS_KEY: Final = "AKIA" + "IOSFODNN7" + "EXAMPLE"
PRIVATE_KEY: Final = (
    "-----BEGIN " + "RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA" * 4 + "\n-----END RSA PRIVATE KEY-----"
)
WEBHOOK: Final = "https://hooks.slack.com/services/" + "T01234567/B01234567/abcdefghijklmnopqrstuvwx"
REPOSITORY: Final = Path(__file__).parents[3]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "harmless.py").write_text('NAME = "lamp"\n')
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def _plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# The first line.\n{text}\n")


def test_a_repository_without_secrets_passes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (main([str(repository)]), capsys.readouterr()) == (0, ("secrets: none in 1 files\n", ""))


@pytest.mark.parametrize("name", ["service/settings/service.py", "tests/test_it.py", "docs/a.md", ".ci/run", "a.json"])
@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (AWS_KEY, "AWS Access Key"),
        (PRIVATE_KEY, "Private Key"),
        (WEBHOOK, "Slack Token"),
        (new_token_text(), "API token of this service"),
    ],
    ids=["an AWS key", "a private key", "a webhook", "a token"],
)
def test_a_planted_secret_fails_the_scan_and_is_not_printed(
    repository: Path, capsys: pytest.CaptureFixture[str], name: str, secret: str, kind: str
) -> None:
    _plant(repository, name, f'value = "{secret}"')
    printed = capsys.readouterr().err if main([str(repository)]) == 1 else "the scan passed"
    # The key's own text is a line below its beginning.
    line = 3 if "\n" in secret else 2
    assert f"SECRET? {name}:{line}: {kind}\n" in printed
    assert secret not in printed


@pytest.mark.parametrize(
    ("name", "found"), [("service/settings/service.py", ["Secret Keyword"]), ("tests/test_it.py", [])]
)
def test_a_password_is_a_secret_in_code_and_a_made_up_one_in_tests(
    repository: Path, name: str, found: list[str]
) -> None:
    _plant(repository, name, 'password = "correct horse battery"')
    assert [finding.kind for finding in findings(repository, [name])] == found


def test_a_file_that_git_ignores_is_not_scanned(repository: Path) -> None:
    (repository / ".gitignore").write_text("var/\n")
    _plant(repository, "var/token", AWS_KEY)
    assert tracked(repository) == [".gitignore", "harmless.py"]


def test_an_images_digest_is_no_secret(repository: Path) -> None:
    _plant(repository, "Dockerfile", f"FROM python@sha256:{'0f' * 32}")
    assert findings(repository, ["Dockerfile"]) == []


def test_what_only_looks_like_a_secret_is_excused_in_its_own_file_alone(repository: Path) -> None:
    ((_, value), *_) = [key for key in NOT_SECRET if key[0] == "indexer/sample/offers.ndjson"]
    for name in ("indexer/sample/offers.ndjson", "indexer/other.ndjson"):
        _plant(repository, name, f'url = "https://buyer:{value}@lamp.example/"')
    assert findings(repository, ["indexer/sample/offers.ndjson", "indexer/other.ndjson"]) == [
        Finding("indexer/other.ndjson", 2, "Basic Auth Credentials")
    ]


def test_each_excuse_is_still_needed() -> None:
    unneeded = [key for key in NOT_SECRET if key[1] not in (REPOSITORY / key[0]).read_text(encoding="utf-8")]
    assert unneeded == []
