"""The image: pinned, built by wheels of the lock alone, without root, and stopped and probed by exec forms."""

import re
import subprocess
from typing import Final

from tests.people.containers.composition import composition, program
from tests.people.containers.image import DOCKERFILE, instructions, split_argument, stages
from tests.support.real.sources import REPOSITORY

PINNED: Final = re.compile(r"[a-z0-9./-]+:[0-9][a-z0-9.-]*@sha256:[0-9a-f]{64}")
BOUND_S: Final = 60.0


def test_the_linter_finds_nothing_and_finds_what_is_wrong() -> None:
    def linted(text: str) -> tuple[int, str]:
        words = [program("hadolint"), "--no-color", "-"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=BOUND_S, check=False)
        return done.returncode, done.stdout

    text = DOCKERFILE.read_text(encoding="utf-8")
    assert linted(text) == (0, "")
    assert "DL3025" in linted(text.replace('ENTRYPOINT ["shop-directory"]', "ENTRYPOINT shop-directory"))[1]


def test_both_stages_stand_on_one_image_that_tag_and_digest_name() -> None:
    base = dict(split_argument(found) for found in instructions() if found.name == "ARG")["PYTHON_IMAGE"]
    assert PINNED.fullmatch(base)
    assert [stage.only("FROM").words[0] for stage in stages()] == ["${PYTHON_IMAGE}"] * 2
    assert composition()["services"]["service"]["build"]["args"]["PYTHON_IMAGE"] == base


def test_packages_are_wheels_of_the_lock_with_their_hashes_and_no_index_is_named() -> None:
    installs = [found.words[0] for found in stages()[0].of("RUN") if " pip install " in found.words[0]]
    assert len(installs) == 2
    assert "--only-binary :all: --require-hashes -r requirements.lock" in installs[0]
    assert "--no-deps --no-index --find-links /wheels shop-directory" in installs[1]
    assert not re.search(r"https?://(?!127\.0\.0\.1)|index-url|trusted-host", DOCKERFILE.read_text(encoding="utf-8"))


def test_what_runs_has_no_root_no_shell_around_it_and_nothing_of_the_build_but_the_environment() -> None:
    final = stages()[-1]
    assert final.only("USER").words == ("10001:10001",)
    last = [found.name for found in final.instructions]
    assert last.index("USER") > max(number for number, name in enumerate(last) if name in {"RUN", "COPY"})
    for name, words in {"ENTRYPOINT": ("shop-directory",), "CMD": ("serve",)}.items():
        assert (final.only(name).words, final.only(name).is_list) == (words, True)
    probe = final.only("HEALTHCHECK")
    assert (probe.words[:2], probe.is_list) == (("CMD", "python"), True)
    assert [(found.flags, found.words) for found in final.of("COPY")] == [
        (("--from=build",), ("/opt/shop-directory", "/opt/shop-directory"))
    ]
    assert not [found for found in instructions() if found.name in {"ADD", "VOLUME", "SHELL", "ONBUILD"}]


def test_commit_and_time_come_by_build_arguments_and_are_empty_without() -> None:
    for stage in stages():
        assert stage.arguments == {"COMMIT": "", "BUILT_AT": ""}
        given = stage.environment(COMMIT="c", BUILT_AT="t")
        assert (given["SHOP_DIRECTORY_COMMIT"], given["SHOP_DIRECTORY_BUILT_AT"]) == ("c", "t")


def test_the_builder_is_sent_what_the_image_copies_and_nothing_else() -> None:
    lines = [line for line in (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").split("\n") if line]
    rules = [line for line in lines if not line.startswith("#")]
    copied = {name for found in stages()[0].of("COPY") for name in found.words[:-1]}
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied
    assert set(rules) - {"*"} - {f"!{name}" for name in copied} == {"**/__pycache__", "**/*.egg-info"}
