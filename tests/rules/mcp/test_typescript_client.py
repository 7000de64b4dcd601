"""The official TypeScript client is offered resources, prompts and completion as every other client is (I3)."""

from pathlib import Path
from typing import Final

import pytest

from service.mcp_server.prompts import PROMPTS, fill
from tests.rules.transports.test_typescript_client import client_program, printed_by
from tests.support.served import post

# Named here, so that tests of this folder may ask for it.
__all__ = ["client_program"]

FIND_A_CODE: Final = next(prompt for prompt in PROMPTS if prompt.name == "find_a_code")


@pytest.mark.rule("I3", "I5", "V2")
@pytest.mark.parametrize("era", ["legacy", "2026-07-28", "auto"])
def test_the_typescript_client_is_offered_the_same(base: str, client_program: Path, era: str) -> None:
    text = post(base, "/tool/get_shop", {"shop_domain": "shop_books"}).body.decode()
    prompt = fill(FIND_A_CODE, {"shop_domain": "shop_books"})
    assert printed_by(client_program.with_name("more.ts"), base, era) == {
        "resources": ["taxonomy://categories"],
        "templates": ["shop://{domain}"],
        "prompts": ["check_shop", "find_a_code", "compare_shops"],
        "read": [{"uri": "shop://harbour-lane-books.example", "mimeType": "application/json", "text": text}],
        "prompt": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "completed": {"values": ["harbour-lane-books.example"], "hasMore": False},
        "missing": {"code": -32002 if era == "legacy" else -32602},
    }
