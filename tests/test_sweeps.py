"""Shards and the store as a user calls them: exit status, output, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from ewan.cli import main
from tests.conftest import Ewan
from tests.experiments import in_results, written

pytestmark = pytest.mark.virtual


def test_two_shards_and_what_comes_of_them(ewan: Ewan, tmp_path: Path) -> None:
    words = ("run", written(tmp_path, variants="reno,cubic"), "--set", "length=500ms", "--runtime", "virtual")
    done = ewan(*words, "--shard", "1/2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (study,) = (path.parent for path in in_results(tmp_path)[0].parent.glob("*/shards"))
    where = str(study.relative_to(tmp_path))
    assert done.stdout == f"shard 1/2: 1 of 1 runs are in results/store; ewan exp collect {where}\n"
    half = ewan("exp", "collect", where, cwd=tmp_path)
    assert half.returncode == 1 and "incomplete  report: results/" in half.stdout, half.stderr
    assert half.stderr.endswith("1 runs are missing, of the shards 2/2: run these shards again, and collect again\n"), (
        half.stderr
    )
    other = ewan(*words, "--shard", "2/2", "--json", cwd=tmp_path)
    (run,) = orjson.loads(other.stdout)["runs"]
    assert other.returncode == 0 and (run["number"], run["status"], run["stored"]) == (2, "complete", True)
    whole = ewan("exp", "collect", where, "--tag", "collected", "--json", cwd=tmp_path)
    found = orjson.loads(whole.stdout)
    assert whole.returncode == 0 and found["status"] == "complete", whole.stderr
    document = orjson.loads((tmp_path / found["directory"] / "experiment.json").read_bytes())
    assert document["tags"] == ["collected"] and [each["taken"] for each in document["runs"]] == [True, True]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--shard", "3/2"), '--shard "3/2": of 2 shards the first is "1/2", the last "2/2"'),
        (("--shard", "1"), '--shard "1": write which part of how many, like "3/100"'),
        (("--shard", "1/2", "--runtime", "netns"), "--runtime netns: shards are of the virtual clock"),
        (("--shard", "1/2", "--tag", "x"), "--shard leaves results for ewan exp collect: give that --name"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["run", written(tmp_path), *words], env={"EWAN_RUNTIME": "virtual"})
    assert done.exit_code == 2 and done.output.startswith(f"ewan: {says}"), done.output
    assert len(done.output.splitlines()) == 1 and not (tmp_path / "results").exists()
