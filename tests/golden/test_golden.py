"""Golden files are compared to the letter, and written only when the environment asks for it."""

from pathlib import Path

import pytest

from tests.golden.golden import RENEW, assert_golden


def test_a_change_fails_with_the_command_that_renews_and_the_reminder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RENEW, raising=False)
    (tmp_path / "a.json").write_text('{\n  "a": 1\n}\n')
    assert_golden("a.json", {"a": 1}, directory=tmp_path)
    with pytest.raises(AssertionError, match=r"a\.json .*SHOP_DIRECTORY_RENEW_GOLDEN=1 pytest tests/golden`\. Why\?"):
        assert_golden("a.json", {"a": 2}, directory=tmp_path, reminder="Why?")
    assert (tmp_path / "a.json").read_text() == '{\n  "a": 1\n}\n'


def test_renewing_writes_sorted_keys_readable_letters_and_a_last_line_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RENEW, "1")
    assert_golden("a.json", {"b": ["緑"], "a": None}, directory=tmp_path)
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "a": null,\n  "b": [\n    "緑"\n  ]\n}\n'
    monkeypatch.delenv(RENEW)
    with pytest.raises(AssertionError, match=r"b\.json is not what the code derives"):
        assert_golden("b.json", {}, directory=tmp_path)
    assert not (tmp_path / "b.json").exists()
