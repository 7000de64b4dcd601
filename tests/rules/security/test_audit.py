"""The audits of packages and of secrets, which are clean only when everything was looked at; and SECURITY.md."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from service.auth.secrets import new_token_text
from service.settings.service import Settings
from shop_directory.settings.reading import PREFIX
from tests.rules.proof import marks_of_tree
from tests.rules.security import secret_scan
from tests.rules.security.audit import (
    CLEAN,
    NOT_ALL_ASKED,
    VULNERABLE,
    Heard,
    Vulnerable,
    judged,
    main,
)
from tests.rules.security.secret_scan import NOT_SECRET, Finding, findings, tracked
from tests.support.loopback import Forwarding, listening

LOCK: Final = "".join(f"{name}==1.2 \\\n    --hash=sha256:{'0' * 64}\n" for name in ("lamp", "shade"))
BOTH: Final = frozenset({"lamp", "shade"})
BAD_LAMP: Final = Vulnerable("lamp", "1.2", "PYSEC-2026-1", ("1.3",))
NOWHERE: Final = "http://127.0.0.1:9/v1/query"


@pytest.fixture
def lock(tmp_path: Path) -> str:
    path = tmp_path / "a.lock"
    path.write_text(LOCK)
    return str(path)


@contextmanager
def vulnerability_service(known: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A service of our own that knows some packages' vulnerabilities, in OSV's words."""

    class Answers(Forwarding):
        def through(self, body: bytes) -> None:
            self.reply(200, json.dumps(known.get(json.loads(body)["package"]["name"], {})).encode())

    with listening(Answers) as port:
        yield f"http://127.0.0.1:{port}/v1/query"


def _osv(package: str, fixed: str) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}]
    affected = [{"package": {"name": package, "ecosystem": "PyPI"}, "ranges": ranges}]
    return {"vulns": [{"id": "PYSEC-2026-1", "summary": "It burns.", "affected": affected}]}


@pytest.mark.slow
def test_a_known_vulnerability_fails_the_audit(lock: str, capsys: pytest.CaptureFixture[str]) -> None:
    with vulnerability_service({"lamp": _osv("lamp", "1.3")}) as url:
        code = main([lock, "--service", "osv", "--osv-url", url])
    assert (code, capsys.readouterr()) == (VULNERABLE, ("", "VULNERABLE: lamp 1.2: PYSEC-2026-1, fixed in 1.3\n"))


@pytest.mark.slow
def test_a_service_that_cannot_be_reached_is_no_clean_bill(lock: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([lock, "--service", "osv", "--osv-url", NOWHERE])
    assert (code, capsys.readouterr()) == (
        NOT_ALL_ASKED,
        (
            "",
            (
                f"NOT AUDITED: no vulnerability service answered for 2 of the 2 packages of {lock}."
                " Nothing is known of them; this is not a clean bill.\n"
            ),
        ),
    )


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((), NOT_ALL_ASKED),
        ((Heard(),), NOT_ALL_ASKED),
        ((Heard(frozenset({"lamp"})),), NOT_ALL_ASKED),
        ((Heard(frozenset({"lamp"})), Heard(frozenset({"shade"}))), CLEAN),
        ((Heard(BOTH),), CLEAN),
        ((Heard(BOTH, found=(BAD_LAMP,)),), VULNERABLE),
        ((Heard(), Heard(frozenset({"lamp"}), (BAD_LAMP,))), VULNERABLE),
    ],
)
def test_only_an_answer_for_each_package_is_a_clean_bill(answers: tuple[Heard, ...], code: int) -> None:
    assert judged("a.lock", BOTH, answers)[0] == code


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
    printed = capsys.readouterr().err if secret_scan.main([str(repository)]) == 1 else "the scan passed"
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


PAGE: Final = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
TESTS: Final = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
RISKS: Final = re.split(r"^### (API\d+) ", PAGE.split("\n## Bounds")[0], flags=re.MULTILINE)[1:]
BOUNDS: Final = re.findall(r"^\| [^|]+ \| ([\d,.]+)(?: bytes)? \| `([\w.]+)` \|$", PAGE, flags=re.MULTILINE)


def test_each_test_that_is_named_exists_and_can_fail() -> None:
    tests = [test for test in marks_of_tree(REPOSITORY / "tests").tests if test.asserts]
    able = {(test.location.split(":")[0], test.location.split(" ")[-1]) for test in tests}
    assert [named for named in TESTS if named not in able] == []


def test_each_risk_of_the_list_is_answered_with_a_test() -> None:
    risks = dict(zip(RISKS[::2], RISKS[1::2], strict=True))
    assert list(risks) == [f"API{number}" for number in range(1, 11)]
    assert [risk for risk, text in risks.items() if "::test_" not in text] == []


def test_each_setting_that_is_named_is_one() -> None:
    named = {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", PAGE)}
    assert named - set(Settings.model_fields) == set()


@pytest.mark.parametrize(("value", "name"), BOUNDS)
def test_each_bound_is_what_the_page_says(value: str, name: str) -> None:
    assert float(value.replace(",", "")) == _bound(name)


def test_every_row_of_the_bounds_is_checked() -> None:
    table = PAGE.split("\n## Bounds")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| ", table, flags=re.MULTILINE)) == len(BOUNDS) + 1


def _bound(name: str) -> Any:  # noqa: ANN401 - a number
    if name.startswith(PREFIX):
        return Settings.model_fields[name.removeprefix(PREFIX).lower()].default
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)
