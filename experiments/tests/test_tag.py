"""`ewan exp tag` as a user calls it."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.tag import tag_command
from ewan.experiments.tests.origins import origin
from ewan.labs.context import Context


def tag(*arguments: str) -> Result:
    return CliRunner().invoke(tag_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An experiment without runs that has ended."""
    experiment = Experiment.create(tmp_path, origin(), "virtual")
    experiment.finish("complete")
    return tmp_path


def test_tags_name_and_note_are_in_the_record(place: Path) -> None:
    before = json.loads((place / "experiment.json").read_text())
    assert not {"name", "tags", "note"} & before.keys(), "nobody gave any"
    assert tag(str(place), "+satellite", "+ha", "--name", "Figure 3", "--note", "-1 dB").exit_code == 0
    answer = tag(str(place), "-ha", "+b", "--json")
    assert json.loads(answer.stdout) == {"name": "Figure 3", "tags": ["satellite", "b"], "note": "-1 dB"}
    after = json.loads((place / "experiment.json").read_text())
    assert {key: each for key, each in after.items() if key not in ("name", "tags", "note")} == before
    assert tag(str(place)).stdout == "name: Figure 3\ntags: satellite, b\nnote: -1 dB\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [(["-h1"], "does not have it"), (["satellite"], "write +satellite"), (["--name", "x" * 90], "at most 80")],
)
def test_what_cannot_be_taken_changes_nothing(place: Path, words: list[str], said: str) -> None:
    before = (place / "experiment.json").read_bytes()
    answer = tag(str(place), "+good", *words)
    assert answer.exit_code == 2 and said in answer.stderr and answer.stderr.count("\n") == 1
    assert (place / "experiment.json").read_bytes() == before


def test_an_experiment_at_work_keeps_its_tags(place: Path) -> None:
    with Experiment.load(place).locked():
        answer = tag(str(place), "+late")
    assert answer.exit_code == 2 and "another `ewan run` is at work" in answer.stderr
    assert Experiment.load(place).document.tags == []


def test_a_link_in_place_of_the_new_record_leads_nowhere(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "file"
    other.write_text("root's")
    (place / ".experiment.json").symlink_to(other)
    assert tag(str(place), "+x").exit_code == 0
    assert other.read_text() == "root's" and not (place / "experiment.json").is_symlink()


def test_root_changes_no_record_where_another_user_can(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.geteuid() == 0, "this test gives a directory to another user: run it as root"
    monkeypatch.delenv("SUDO_UID", raising=False)
    os.chown(place, pwd.getpwnam("nobody").pw_uid, -1)
    answer = tag(str(place), "+x")
    assert answer.exit_code == 2 and "other users can write there" in answer.stderr and answer.stderr.count("\n") == 1
    assert Experiment.load(place).document.tags == []
