"""The invented corpus: seeded, unlike what it was learnt from, the smaller the beginning of the larger."""

import json
import random
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

from bench.typeahead.corpus import invented_shops, mixed_corpus
from bench.typeahead.names import Names, script_of
from bench.typeahead.workload import typing, typing_sessions
from index_mappings.text import fold, joined
from tests.support.catalogues import shop

_KNOWN = [
    shop(f"{first} {second}", f"{first}{second}.com".lower(), popularity=number / 100, aliases=[f"{first} Store"])
    for number, (first, second) in enumerate(
        (first, second)
        for first in ("Garden", "Lampen", "Morgen", "Book", "Linen", "Tool")
        for second in ("Market", "House", "Planet", "Point")
    )
]


def _data(directory: Path) -> Path:
    lines = "".join(f"{json.dumps(line)}\n" for line in _KNOWN)
    (directory / "dev-shops.ndjson").write_text(lines, encoding="utf-8")
    (directory / "dev-sessions.ndjson").write_text(
        json.dumps({"keystrokes": ["g", "ga", "gar", "gard"], "target": _KNOWN[0]["id"]}) + "\n", encoding="utf-8"
    )
    return directory


def test_the_same_seed_gives_the_same_corpus_and_another_one_another(tmp_path: Path) -> None:
    data = _data(tmp_path)
    assert list(mixed_corpus(data, 200)) == list(mixed_corpus(data, 200))
    assert list(mixed_corpus(data, 200)) != list(mixed_corpus(data, 200, seed=1))


def test_all_known_shops_are_in_and_ids_and_domains_are_unique(tmp_path: Path) -> None:
    lines = list(mixed_corpus(_data(tmp_path), 300))
    assert len(lines) == len(_KNOWN) + 300
    assert [line for line in _KNOWN if line not in lines] == []
    assert len({line["id"] for line in lines}) == len({line["domain"] for line in lines}) == len(lines)


def test_a_smaller_corpus_is_within_a_larger_one(tmp_path: Path) -> None:
    data = _data(tmp_path)
    larger = {line["id"]: line for line in mixed_corpus(data, 300)}
    assert [line for line in mixed_corpus(data, 100) if larger[line["id"]] != line] == []


def test_no_name_that_was_learnt_is_given_out() -> None:
    known = {joined(fold(name)) for line in _KNOWN for name in (line["name"], *line["aliases"])}
    invented = [name for line in islice(invented_shops(_KNOWN), 500) for name in (line["name"], *line["aliases"])]
    assert [name for name in invented if joined(fold(name)) in known] == []


def test_a_name_may_go_on_from_a_long_beginning() -> None:
    names = Names([line["name"] for line in _KNOWN], [])
    start = "Market " * 20
    assert names.invent(random.Random(1), "latin", 21, start).startswith(start)  # noqa: S311 - seeded


def test_a_script_is_named_by_the_letters_that_are_not_latin() -> None:
    texts = ("Lamp", "7-11", "Лампа", "Lamp Лампа", "灯", "ランプ", "灯ランプ")
    assert [script_of(text) for text in texts] == [
        "latin", "latin", "cyrillic", "cyrillic", "han", "kana", "han and kana"
    ]  # fmt: skip


def test_each_person_types_key_by_key(tmp_path: Path) -> None:
    typed = [press for session in islice(typing_sessions(_data(tmp_path), 7, invented=20), 50)
             for press in session.requests]  # fmt: skip
    assert typed[0].q == typed[0].q[:1]
    assert {abs(len(after.q) - len(before.q)) for before, after in pairwise(typed)
            if len(after.q) > 1} == {1}  # fmt: skip


def test_many_type_at_the_same_time(tmp_path: Path) -> None:
    data = _data(tmp_path)
    typed = typing(data, 7, 4_000, invented=20)
    assert typed == typing(data, 7, 4_000, invented=20)
    one_by_one = (press for session in typing_sessions(data, 7, invented=20) for press in session.requests)
    assert Counter(typed) == Counter(islice(one_by_one, 4_000))
    went_on = [after.q[:-1] == before.q for before, after in pairwise(typed) if len(after.q) > 2]
    # By chance only: one after the other, nearly all would.
    assert sum(went_on) < len(went_on) / 4
