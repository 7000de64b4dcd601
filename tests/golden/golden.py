"""Golden files: a value must be what its file says, and a change of it is made on purpose and seen in review.

`SHOP_DIRECTORY_RENEW_GOLDEN=1 pytest tests/golden` renews the files.
"""

import json
import os
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent
RENEW: Final = "SHOP_DIRECTORY_RENEW_GOLDEN"


def assert_golden(name: str, value: object, *, directory: Path = DIRECTORY, reminder: str = "") -> None:
    """Hold a value against its golden file, or write the file when the environment asks for it.

    `reminder` says what else a change of this value calls for, after how the file is renewed.
    """
    path = directory / name
    written = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get(RENEW) == "1":
        path.write_text(written, encoding="utf-8")
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    advice = f"{name} is not what the code derives; if that is meant, renew it by `{RENEW}=1 pytest tests/golden`"
    assert written == known, f"{advice}. {reminder}".strip()
