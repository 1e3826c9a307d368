"""Which cluster is meant, and where its profile is found: the user's own words come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.scheduler.profile_places import Choice, Profiles, choose, chosen_profile
from toolkit.support.errors import WrongInput
from toolkit.support.settings import Settings
from toolkit.support.site import Setting, Site

if TYPE_CHECKING:
    from pathlib import Path

SITE = Site(cluster=Setting("sites", "/etc/ctk/site.toml"))
SETTINGS = Settings(cluster=Setting("users", "/home/ann/settings.toml"))
RECIPE = Choice("recipes", "defs/mine.toml")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The directories of profiles, nearest first, and a site that names its own."""
    work, config = tmp_path / "work", tmp_path / "config"
    site = tmp_path / "site.toml"
    found = {"here": work / "sbatch/clusters", "user": config / "ctk/clusters", "site": tmp_path / "ours"}
    for directory in found.values():
        directory.mkdir(parents=True)
    site.write_text(f'profiles = "{found["site"]}"\n')
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("CTK_SITE", str(site))
    return found


def profile(directory: Path, name: str, description: str) -> Path:
    path = directory / f"{name}.toml"
    path.write_text(f'scheduler = "slurm"\ndescription = "{description}"\n')
    return path


@pytest.mark.parametrize(
    ("named", "recipe", "settings", "site", "expected"),
    [
        ("mine", RECIPE, SETTINGS, SITE, Choice("mine")),
        (None, RECIPE, SETTINGS, SITE, RECIPE),
        (None, None, SETTINGS, SITE, Choice("users", "/home/ann/settings.toml")),
        (None, None, Settings(), SITE, Choice("sites", "/etc/ctk/site.toml")),
        (None, None, Settings(), Site(), None),
    ],
)
def test_the_nearest_choice_counts(
    named: str | None, recipe: Choice | None, settings: Settings, site: Site, expected: Choice | None
) -> None:
    assert choose(named, recipe, None, settings, site) == expected


def test_practice_cluster_of_the_shell_comes_before_the_settings(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ctk lab env` sets SLURM_CONF, next to which the lab has its profile."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "lab.d/slurm.conf"))
    (tmp_path / "lab.d/ctk-profiles").mkdir(parents=True)
    (places["user"].parent / "settings.toml").write_text('cluster = "slurm"\n')
    assert chosen_profile(None) == Profiles.here().profile("slurm")
    profile(tmp_path / "lab.d/ctk-profiles", "lab", "two nodes")
    found = chosen_profile(None)
    assert found is not None
    assert (found.name, found.description) == ("lab", "two nodes")
    assert Profiles.here().paths()["lab"][1] == "lab"
    assert choose(None, RECIPE, tmp_path / "lab.toml", SETTINGS, SITE) == RECIPE


def test_a_profile_hides_those_of_its_name_further_away(places: dict[str, Path]) -> None:
    for owner in ("site", "user", "here"):
        profile(places[owner], "tsubame4", owner)
        assert Profiles.here().profile("tsubame4").description == owner
        assert Profiles.here().paths()["tsubame4"][1] == owner
    assert Profiles.here().paths()["abci3"][1] == "shipped"


def test_a_path_names_a_profile(places: dict[str, Path], tmp_path: Path) -> None:
    path = profile(tmp_path, "other", "by path")
    for name in (str(path), "../other.toml"):
        assert Profiles.here().profile(name).description == "by path"
    with pytest.raises(WrongInput, match="No such file"):
        Profiles.here().profile("./none.toml")
    with pytest.raises(WrongInput, match="is not a valid file name"):
        Profiles.here().profile("./Not Valid.toml")


def test_an_unknown_name_is_answered_with_the_nearest_and_who_named_it(places: dict[str, Path]) -> None:
    with pytest.raises(WrongInput, match=r'there is no cluster profile "tsubame"\. Did you mean "tsubame4"'):
        chosen_profile("tsubame")
    with pytest.raises(WrongInput, match=r'defs/mine\.toml: cluster: there is no cluster profile "recipes"'):
        chosen_profile(None, RECIPE)


def test_nobody_names_a_cluster(places: dict[str, Path]) -> None:
    assert chosen_profile(None) is None


def test_files_of_other_names_are_no_profiles(places: dict[str, Path]) -> None:
    (places["here"] / "Not A Name.toml").write_text("broken")
    (places["here"] / "README").write_text("words")
    assert not [name for name, (_, owner) in Profiles.here().paths().items() if owner == "here"]


def test_settings_of_site_and_user_name_a_cluster(places: dict[str, Path], tmp_path: Path) -> None:
    profile(places["site"], "ours", "of the site")
    site = tmp_path / "site.toml"
    site.write_text(site.read_text() + 'cluster = "ours"\n')
    found = chosen_profile(None)
    assert found is not None
    assert found.description == "of the site"
    (tmp_path / "config/ctk/settings.toml").write_text('cluster = "lab"\n')
    found = chosen_profile(None)
    assert found is not None
    assert found.name == "lab"
