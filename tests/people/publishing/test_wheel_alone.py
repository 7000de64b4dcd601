"""The installed wheel needs nothing of the repository."""

from pathlib import Path

from tests.people.containers.building import build_wheel, copy_sources, install
from tests.people.publishing.try_wheel import try_command


def test_the_installed_wheel_indexes_its_sample_serves_it_and_answers_over_stdio(tmp_path: Path) -> None:
    build_wheel(copy_sources(tmp_path), tmp_path / "wheels")
    installed = install(tmp_path / "wheels", tmp_path / "target")
    folder = tmp_path / "empty"
    folder.mkdir()
    tried = try_command(installed.programs / "shop-directory", folder)
    suggested = [shop["name"] for shop in tried["suggest"]["shops"]]
    found = [shop["name"] for shop in tried["found"]["results"]]
    assert suggested
    assert all("lum" in name.lower() for name in suggested)
    assert set(suggested) <= set(found)
