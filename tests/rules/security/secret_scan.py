"""Does a file that git tracks hold a secret? `make audit` asks bc-detect-secrets, and looks for tokens of our own form.

That package is the maintained fork of detect-secrets. What looks like a secret is reported by location and kind,
never by its text. What only looks like one stands below, in full: it is none.
Exit codes: 0 none, 1 some.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings, transient_settings

from service.auth.secrets import is_token_text

# Made-up passwords and long numbers are what many tests are about, hashes all that locks are, a report names the commit
# that it is of, and the page's texts speak of tokens: there, only what has the form of a real secret counts.
_GUESSES: Final = frozenset(
    {"Secret Keyword", "Basic Auth Credentials", "Base64 High Entropy String", "Hex High Entropy String"}
)
_NO_GUESSES_IN: Final = re.compile(
    r"tests/|bench/|service/web/texts/|docs/performance(-second)?\.json$|requirements(-dev)?\.lock$|(.*/)?package-lock\.json$"
)
NOT_SECRET: Final = {
    ("indexer/sample/offers.ndjson", "basket"): "of a sample offer whose URL must be refused for its password",
    ("indexer/sinks/embedded/generation.py", "raw"): "the name of a tokenizer",
    ("docker-compose.yml", "redis"): "the name of a store",
    ("docs/clients.md", "SHOP_DIRECTORY_API_TOKEN"): "the name of a variable",
    ("pyproject.toml", "service.commands.tokens:token"): "where a command is",
    ("pyproject.toml", "token"): "the name of that command",
    ("service/rest/openapi/examples.json", "0123456789abcdef0123456789abcdef"): "what stands for a request's id",
    ("service/rest/openapi/examples.json", "0123456789abcdef0123456789abcdef01234567"): "what stands for a commit",
    ("service/rest/openapi/examples.json", "sqlite"): "the name of a store",
    ("shop_directory/runtime/metrics.py", "limiter` or `reports"): "the names of stores",
    ("one-server/shop-directory.service", "NUMBA_CACHE_DIR=/var/cache/shop-directory"): "a folder",
    ("one-server/shop-directory-follow.service", "NUMBA_CACHE_DIR=/var/cache/shop-indexer"): "the same",
    ("one-server/shop-directory-build.service", "NUMBA_CACHE_DIR=/var/cache/shop-indexer"): "the same",
    ("kubernetes/indexer.yaml", "false"): "whether the cluster's own token is mounted",
    ("kubernetes/service.yaml", "false"): "the same",
}
# The digest of an image or of an npm package identifies it; it opens nothing.
_DIGEST: Final = r"@sha256:[0-9a-f]{64}\b|\bsha512-[0-9A-Za-z+/]{86}=="
_OWN_TOKEN: Final = re.compile(r"(?<![0-9A-Za-z])sd_[0-9A-Za-z]{49}(?![0-9A-Za-z])")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    file: str
    line: int
    kind: str


def findings(root: Path, files: Iterable[str]) -> list[Finding]:
    found: set[Finding] = set()
    with default_settings() as settings:
        settings.filters["detect_secrets.filters.regex.should_exclude_line"] = {"pattern": [_DIGEST]}
        configured: dict[str, Any] = settings.json()
    with transient_settings(configured):
        for file in files:
            collection = SecretsCollection(root=str(root))
            collection.scan_file(file)
            for _, secret in collection:
                guessed = secret.type in _GUESSES and _NO_GUESSES_IN.match(file)
                if not guessed and (file, secret.secret_value) not in NOT_SECRET:
                    found.add(Finding(file, secret.line_number, secret.type))
            found.update(_own_tokens(root, file))
    return sorted(found)


def tracked(root: Path) -> list[str]:
    """The files that git tracks, and those that it would track if they were added."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in set(done.stdout.split("\0")) if name and (root / name).is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    """Scan the repository that is named, or the one around; the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path.cwd()
    files = tracked(root)
    found = findings(root, files)
    for one in found:
        sys.stderr.write(f"SECRET? {one.file}:{one.line}: {one.kind}\n")
    if found:
        return 1
    sys.stdout.write(f"secrets: none in {len(files)} files\n")
    return 0


def _own_tokens(root: Path, file: str) -> Iterator[Finding]:
    text = (root / file).read_bytes().decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if any(map(is_token_text, _OWN_TOKEN.findall(line))):
            yield Finding(file, number, "API token of this service")


if __name__ == "__main__":
    sys.exit(main())
