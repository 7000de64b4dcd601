"""The audit of packages says "clean" only when a service said so, package by package."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.rules.security.audit import (
    BROKEN,
    CLEAN,
    NOT_ALL_ASKED,
    VULNERABLE,
    Heard,
    Vulnerable,
    for_every_machine,
    heard,
    judged,
    locked_packages,
    main,
)

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

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(known.get(asked["package"]["name"], {})).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
        finally:
            server.shutdown()
            thread.join()


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
def test_a_service_that_knows_of_nothing_wrong_passes_the_audit(lock: str, capsys: pytest.CaptureFixture[str]) -> None:
    with vulnerability_service({}) as url:
        code = main([lock, "--service", "osv", "--osv-url", url])
    assert (code, capsys.readouterr().out) == (
        CLEAN,
        f"audit: none of the 2 packages of {lock} is known to be vulnerable\n",
    )


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


@pytest.mark.slow
def test_a_lock_without_hashes_is_a_broken_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "a.lock"
    lock.write_text("lamp==1.2\n")
    assert main([str(lock), "--service", "osv", "--osv-url", NOWHERE]) == BROKEN
    assert "does not contain a hash" in capsys.readouterr().err


def test_packages_that_a_service_skips_are_not_answered_for() -> None:
    report = {
        "dependencies": [
            {"name": "lamp", "version": "1.2", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["1.3"]}]},
            {"name": "shade", "skip_reason": "not found"},
        ]
    }
    assert heard(json.dumps(report), "No known vulnerabilities found") == Heard(frozenset({"lamp"}), (BAD_LAMP,))


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


def test_the_packages_of_a_lock_are_read_those_for_other_machines_too() -> None:
    text = LOCK.replace("lamp==1.2 ", "lamp==1.2 ; sys_platform == 'win32' ")
    assert (locked_packages(text), for_every_machine(text)) == (BOTH, (LOCK,))


def test_of_a_package_in_two_versions_each_is_asked_about() -> None:
    older = "lamp==1.1 \\\n    --hash=sha256:00\n"
    lamp, shade = LOCK[: LOCK.index("shade")], LOCK[LOCK.index("shade") :]
    conditional = older.replace("1.1 ", "1.1 ; python_version < '3.12' ")
    assert for_every_machine(conditional + lamp + shade) == (older + shade, lamp)
