"""Write the sample catalogue: ``python -m indexer.sample.generate [DIRECTORY]``, by default into this directory.

It writes the same bytes in every run on every machine: one object a line, ordered by key, in unescaped UTF-8.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from indexer.sample.category_names import category_names
from indexer.sample.coupons import coupons
from indexer.sample.offers import offers
from indexer.sample.partners import affiliate_programs, redirects, resource_accounts
from indexer.sample.records import Record
from indexer.sample.shipping import shipping
from indexer.sample.shops import shops
from indexer.sample.trust import trust


def catalogue() -> Mapping[str, Sequence[Record]]:
    """All records by the name of their file, without its ending."""
    every_shop = shops()
    return {
        "shops": every_shop,
        "coupons": coupons(every_shop),
        "offers": offers(every_shop),
        "shipping": shipping(every_shop),
        "trust": trust(every_shop),
        "affiliate_programs": affiliate_programs(every_shop),
        "redirects": redirects(),
        "resource_accounts": resource_accounts(),
        "categories": category_names(),
    }


def write(directory: Path) -> Mapping[str, int]:
    """Write all files into a directory that exists; returns the number of records by file name."""
    counts: dict[str, int] = {}
    for name, records in catalogue().items():
        (directory / f"{name}.ndjson").write_bytes(b"".join(_line(record) for record in records))
        counts[name] = len(records)
    return counts


def _line(record: Record) -> bytes:
    return json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def main(arguments: Sequence[str]) -> None:
    """Write into the directory of the first argument, made if necessary, and print the number of records by file."""
    directory = Path(arguments[0]) if arguments else Path(__file__).parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, count in write(directory).items():
        sys.stdout.write(f"{name}.ndjson {count}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
