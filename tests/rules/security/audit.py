"""Are the locked packages known to be vulnerable? `make audit` asks, by pip-audit; silence is never taken for "clean".

pip-audit ends well, with the words "No known vulnerabilities found", when its service knew nothing of any package: so
its report is read package by package, and what the one service is silent about the other is asked.
Exit codes: 0 all were asked about and none is vulnerable, 1 some are, 2 the audit itself is broken, 3 none is known to
be, but not all could be asked about.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

CLEAN: Final = 0
VULNERABLE: Final = 1
BROKEN: Final = 2
NOT_ALL_ASKED: Final = 3

_SERVICES: Final = ("pypi", "osv")
_BOUND_S: Final = 300.0
# How pip-audit ends when no service answers it, whichever of its layers says so.
_UNREACHABLE: Final = re.compile(r"requests\.exceptions\.|ServiceError|ConnectionError|Could not connect")


class BrokenAuditError(Exception):
    """pip-audit could not do its work, and not for want of an answer."""


@dataclass(frozen=True, slots=True)
class Vulnerable:
    package: str
    version: str
    vulnerability: str
    fixed_in: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """The packages that a service knew something of, be it that nothing is wrong, and what is wrong."""

    answered: frozenset[str] = frozenset()
    found: tuple[Vulnerable, ...] = ()


def heard(report: str, complaint: str) -> Heard:
    """Read what pip-audit wrote: its standard output, which is JSON or nothing, and its standard error.

    BrokenAuditError if there is no report, and that is not for want of an answer.
    """
    if not report.strip():
        if _UNREACHABLE.search(complaint):
            return Heard()
        raise BrokenAuditError(complaint.strip() or "pip-audit said nothing")
    packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    return Heard(
        frozenset(package["name"] for package in packages if "skip_reason" not in package),
        tuple(
            Vulnerable(package["name"], package["version"], known["id"], tuple(known["fix_versions"]))
            for package in packages
            for known in package.get("vulns", ())
        ),
    )


def judged(lock: str, locked: frozenset[str], answers: Sequence[Heard]) -> tuple[int, list[str]]:
    """The exit code, and the lines to print, for what each service said of the packages in a lock."""
    found = sorted(
        {one for answer in answers for one in answer.found}, key=lambda one: (one.package, one.vulnerability)
    )
    lines = [
        f"VULNERABLE: {one.package} {one.version}: {one.vulnerability}, fixed in {', '.join(one.fixed_in) or 'none'}"
        for one in found
    ]
    unasked = locked.difference(*(answer.answered for answer in answers))
    if unasked:
        lines.append(
            f"NOT AUDITED: no vulnerability service answered for {len(unasked)} of the {len(locked)} packages of "
            f"{lock}. Nothing is known of them; this is not a clean bill."
        )
    if not lines:
        lines.append(f"audit: none of the {len(locked)} packages of {lock} is known to be vulnerable")
    return VULNERABLE if found else NOT_ALL_ASKED if unasked else CLEAN, lines


def locked_packages(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE))


def for_every_machine(text: str) -> tuple[str, ...]:
    """A lock without the conditions on machines: pip-audit would leave out what is not for the one that it runs on.

    A package that is locked in several versions, each for other machines, would be refused: the second version of
    each is in a second lock, and so on.
    """
    locks: list[str] = []
    seen: dict[str, int] = {}
    for requirement in re.split(
        r"^(?=[A-Za-z0-9._-]+==)", re.sub(r" ; .*?(?=( \\)?$)", "", text, flags=re.MULTILINE), flags=re.MULTILINE
    ):
        name = requirement.partition("==")[0]
        version = seen[name] = seen.get(name, -1) + 1
        locks += [""] * (version + 1 - len(locks))
        locks[version] += requirement
    return tuple(locks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask; the exit code."""
    options = _options(arguments)
    text = Path(options.lock).read_text(encoding="utf-8")
    locked = locked_packages(text)
    answers: list[Heard] = []
    try:
        for service in options.services:
            if locked.difference(*(answer.answered for answer in answers)):
                answers += [_ask(service, lock, options.osv_url) for lock in for_every_machine(text)]
    except (BrokenAuditError, ValueError, KeyError) as error:
        sys.stderr.write(f"BROKEN: the audit of {options.lock} could not be done: {error}\n")
        return BROKEN
    code, lines = judged(options.lock, locked, answers)
    (sys.stderr if code else sys.stdout).write("".join(f"{line}\n" for line in lines))
    return code


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", help="a requirements file with hashes")
    parser.add_argument("--service", dest="services", action="append", choices=_SERVICES, help="ask only this one")
    parser.add_argument("--osv-url", help="where an OSV service of one's own answers")
    options = parser.parse_args(arguments)
    options.services = options.services or list(_SERVICES)
    return options


def _ask(service: str, lock: str, osv_url: str | None) -> Heard:
    # The lock holds everything with its hash: nothing is resolved, installed or downloaded.
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip"]
    command += ["--vulnerability-service", service, "--format", "json", "--progress-spinner", "off"]
    command += ["--osv-url", osv_url] if osv_url else []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "every.lock"
        path.write_text(lock, encoding="utf-8")
        command += ["--requirement", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BOUND_S, check=False)
    return heard(done.stdout, done.stderr)


if __name__ == "__main__":
    sys.exit(main())
