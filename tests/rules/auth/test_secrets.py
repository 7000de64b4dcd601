"""A token's text: random, recognisable, and refused when mistyped."""

import string
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.auth.secrets import PREFIX, hash_of, is_token_text, new_token_id, new_token_text

DIGITS = string.digits + string.ascii_letters


@pytest.mark.rule("Q1")
def test_a_new_text_has_the_form_of_a_token_and_comes_once() -> None:
    texts = {new_token_text() for _ in range(1000)}
    assert (len(texts), {len(text) for text in texts}) == (1000, {52})
    assert all(text.startswith(PREFIX) and is_token_text(text) for text in texts)
    assert set("".join(text.removeprefix(PREFIX) for text in texts)) == set(DIGITS)


@given(at=st.integers(0, 51), character=st.sampled_from(DIGITS + "_-"))
def test_a_text_with_one_wrong_character_is_no_token(at: int, character: str) -> None:
    text = new_token_text()
    mistyped = text[:at] + character + text[at + 1 :]
    assert is_token_text(mistyped) == (mistyped == text)


@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    assert not is_token_text(text)


@pytest.mark.parametrize("spoil", [str.upper, str.strip, lambda text: text + "\n", lambda text: text[:-1]])
def test_a_token_is_taken_as_it_is(spoil: object) -> None:
    text = new_token_text()
    spoilt = spoil(text) if callable(spoil) else ""
    assert is_token_text(spoilt) == (spoilt == text)


def test_the_hash_is_the_sha_256_of_the_whole_text() -> None:
    assert hash_of("sd_x").hexadecimal == sha256(b"sd_x").hexdigest()


def test_an_id_is_no_part_of_a_secret() -> None:
    ids = {new_token_id() for _ in range(100)}
    assert (len(ids), {len(token_id) for token_id in ids}, set("".join(ids))) == (100, {16}, set("0123456789abcdef"))
