"""`make examples`: calls the service on the sample catalogue and writes down what it answers."""

import logging
import sys
import tempfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from tests.people.docs_in_service.recording import FILE, record, written


def main() -> None:
    # The indexer reports its progress, and a service that fails on purpose says so.
    logging.disable()
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        examples = record(Path(folder))
    FILE.write_text(written(examples), encoding="utf-8")
    sys.stdout.write(f"{len(examples)} examples\n")


if __name__ == "__main__":
    main()
