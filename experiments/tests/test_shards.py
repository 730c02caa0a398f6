"""Shards of a study in any order, and their results collected: the experiment that one machine would have made."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from pathlib import Path

import orjson
import pytest

from ewan.analysis import statistics, summary
from ewan.experiments.engine import engine, preparation
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.request import facts_of
from ewan.experiments.engine.stop_rule import Point
from ewan.experiments.shards import collect, shard, share
from ewan.experiments.shards.share import Shard
from ewan.experiments.shards.study import Record, RunOutcome, Study
from ewan.experiments.store import Store
from ewan.experiments.tests.engines import CONTEXT, half_of_range, parts
from ewan.generator import scenario
from ewan.generator.scenario import Stop
from ewan.labs.base import codec
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError

TEXT = """
name: study
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s, loss: 1%}}
sweep: {cc: [reno, cubic, bic]}
seeds: 3
longest: 5s
sample: 100ms
steps:
  - {name: load, from: left1, to: right1, congestion: "${cc}", for: 500ms, bulk: {}}
"""
STOP = "stop: {metric: aggregate goodput, within: 1%, confidence: 95%, at_least: 2, at_most: 5}\n"
STUDY = Stop(metric="aggregate goodput", within="5%", confidence="95%", at_least=3, at_most=100)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/3", "1/999999"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r'like "3/100"|shards'):
        Shard.parse(text)


def test_each_run_is_of_one_shard() -> None:
    for total, count in ((10, 3), (3, 7), (100, 100), (1, 1)):
        shards = [Shard(index, count) for index in range(1, count + 1)]
        numbers = [number for each in shards for number in each.numbers(total)]
        assert sorted(numbers) == list(range(1, total + 1))
        for each in shards:
            assert all(each.has(number) and share.owner(number, count) == each for number in each.numbers(total))
    assert [Shard(index, 100).file for index in (3, 100)] == ["003-of-100.json", "100-of-100.json"]


def test_a_round_has_what_the_width_of_intervals_tells() -> None:
    narrow, wide, wider, few, full = ((("cc", name),) for name in ("narrow", "wide", "wider", "few", "full"))
    values: dict[Point, list[float]] = {
        narrow: [99.0, 100, 101],
        wide: [94.0, 100, 106],  # half of the range is 6 % of the mean: (6/5)² × 3 are needed
        wider: [50.0, 100, 150],  # 300 are: twice as many are tried first
        few: [100.0],
        full: [50.0, 150] * 50,
    }
    runs = {point: len(each) for point, each in values.items()}
    assert share.wanted(STUDY, values, runs, half_of_range) == {wide: 2, wider: 3, few: 1}
    assert share.wanted(STUDY, {}, {few: 2}, half_of_range) == {few: 1}, "its runs have no value: others may"
    close = STUDY.model_copy(update={"at_most": 4})
    assert share.wanted(close, values, runs, half_of_range) == {wide: 1, wider: 1, few: 1}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which commands are given, with a directory for temporary files of its own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def judged() -> Parts:
    """An engine's surroundings that compute the summary as the product does."""
    return dataclasses.replace(parts("ok"), analyse=summary.analyse, estimate=statistics.mean_interval)


def study_of(place: Path, text: str = TEXT) -> Study:
    return Study.of_scenario(scenario.parse(text, place / "study.scenario.yaml"), None, {}, None)


def facts(study: Study) -> tuple[Facts, Stop | None]:
    stop = study.scenario.stop_at(None)
    return facts_of(study.scenario, stop, None, {}, None, "virtual", {}), stop


def context(place: Path) -> Context:
    return dataclasses.replace(CONTEXT, runtime="virtual", store=place / "store")


def shared(place: Path, study: Study, part: Shard, fresh: bool = False) -> tuple[int, list[RunOutcome]]:
    """Executes a shard."""
    told, _ = facts(study)
    return shard.run(context(place), study, part, told, judged(), unverified=False, fresh=fresh)


def collected(place: Path, study: Study) -> collect.Collection:
    told, stop = facts(study)
    return collect.collect(context(place), Study.of_directory(study.directory), told, judged(), stop)


def tables(directory: Path) -> dict[str, bytes]:
    """All files of runs but those of their cost, and the summary. The lock of a run is there until its kernel has
    ended."""
    found = [*directory.glob("runs/[!.]*/**/*"), directory / "summary.json"]
    kept = [path for path in found if path.is_file() and path.name not in ("wall.json", "console.log")]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in kept}


@pytest.mark.virtual
def test_seven_shards_in_any_order_are_the_experiment_of_one_machine(place: Path) -> None:
    """One of them is run twice, one interrupted, one loses an entry: nothing of that is seen in the end."""
    study = study_of(place)
    order = [Shard(index, 7) for index in range(1, 8)]
    random.Random(7).shuffle(order)
    for part in order[:-1]:
        status, done = shared(place, study, part)
        assert status == 0 and all(each.stored for each in done)
        assert [each.number for each in done] == list(part.numbers(9))
    found = collected(place, study)
    assert (found.status, found.missing) == (1, list(order[-1].numbers(9))), "it says what is missing"
    words = collect.missing_words(found.missing, study.records())
    assert words == f"{len(found.missing)} runs are missing, of the shards {order[-1]}"
    entries = {entry.number: entry for entry in Experiment.load(found.directory).runs}
    assert entries[found.missing[0]].error == "no shard has executed it"
    assert entries[order[0].index].taken and entries[order[0].index].verified
    assert shared(place, study, order[-1])[0] == 0
    store = Store(place / "store")
    (first,) = [each for each in study.records() if each.shard == "1/7"]
    key = first.runs[0].key
    assert key is not None
    before = store.manifest(key)
    assert shared(place, study, Shard(1, 7))[0] == 0 and store.manifest(key) == before, "it was not run again"
    store.path(key).write_bytes(b"damaged")
    found = collected(place, study)
    assert (found.status, found.missing) == (1, [1])
    assert shared(place, study, Shard(1, 7))[0] == 0
    found = collected(place, study)
    assert (found.status, found.missing, found.further) == (0, [], 0)
    assert not list((place / "temporary").iterdir()), "a shard leaves nothing beside the store and its record"
    told, _ = facts(study)
    (place / "local").mkdir()
    prepared = preparation.prepare(study.jobs(), told, virtual=True, directory=place / "local")
    assert engine.run(prepared, parts=judged(), context=dataclasses.replace(context(place), store=None)) == 0
    assert tables(found.directory) == tables(place / "local")
    Experiment.load(found.directory).check()


@pytest.mark.virtual
def test_a_stop_rule_goes_by_rounds(place: Path) -> None:
    """The same shards run, and are collected, again until the rule is reached or points have as many runs as they
    may."""
    text = TEXT.replace("sweep: {cc: [reno, cubic, bic]}", "parameters: {cc: reno}").replace("seeds: 3", "seeds: 2")
    study = study_of(place, text + STOP)
    assert [study.total, shared(place, study, Shard(1, 2))[0]] == [2, 0]
    assert collected(place, study).missing == [2] and not study.rounds().runs, "a round ends before the next begins"
    assert shared(place, study, Shard(2, 2))[0] == 0
    found = collected(place, study)
    assert found.status == 0 and found.further == 2 and "within 0.01 of its mean" in found.stopped
    assert [(each.number, each.seed) for each in study.rounds().runs] == [(3, 3), (4, 4)]
    again = collected(place, study)
    assert again.missing == [3, 4] and study.total == 4, "collecting twice adds no round"
    for part in (Shard(2, 2), Shard(1, 2)):
        status, done = shared(place, study, part)
        assert status == 0 and [each.number for each in done] == [part.index, part.index + 2]
    found = collected(place, study)
    assert found.further == 1 and study.rounds().ends == (4, 5), "five are the most"
    assert shared(place, study, Shard(1, 2))[0] == 0
    found = collected(place, study)
    assert (found.status, found.further) == (0, 0)
    runs = orjson.loads((found.directory / "summary.json").read_bytes())["runs"]
    assert sorted(run["seed"] for run in runs) == [1, 2, 3, 4, 5]


@pytest.mark.virtual
def test_what_went_wrong_in_a_shard_is_named(place: Path) -> None:
    text = TEXT.replace("[reno, cubic, bic]", "[reno]") + '  - {name: wrong, on: left1, run: "false"}\n'
    study = study_of(place, text)
    status, done = shared(place, study, Shard(1, 3))
    assert status == 1 and not done[0].stored and "status 1" in (done[0].error or "")
    found = collected(place, study)
    assert (found.status, found.wrong, found.missing) == (1, [1], [2, 3])
    assert "incomplete in shard 1/3 on " in (Experiment.load(found.directory).runs[0].error or "")


def test_what_does_not_belong_together_is_refused(place: Path) -> None:
    study = study_of(place)
    with pytest.raises(LabError, match="there are no shards"):
        Study.of_directory(place)
    with pytest.raises(LabError, match="there are no shards"):
        Study.of_directory(study.directory)
    told, _ = facts(study)
    study.begin(told.files)
    with pytest.raises(LabError, match="no shard has left a record yet"):
        collected(place, study)
    record = Record("1/2", "k" * 64, "b" * 64, False, "here", "", "1", ())
    study.keep(record)
    study.keep(codec.replace(record, shard="2/2", binary="c" * 64, machine="there", ended="2"))
    with pytest.raises(LabError, match=r"shards 1/2 and 2/2 were executed with different versions of the node binary"):
        collected(place, study)
    (study.directory / "shards/1-of-2.json").write_text("{")
    with pytest.raises(LabError, match=r"1-of-2\.json: is damaged .* run that shard again"):
        study.records()
    (study.directory / "rounds.json").write_text("[]")
    with pytest.raises(LabError, match=r"rounds\.json: is damaged .* remove it, and collect again"):
        study.rounds()
    with pytest.raises(LabError, match="EWAN_STORE=off"):
        shard.run(CONTEXT, study, Shard(1, 2), told, judged(), unverified=False, fresh=False)


def test_a_store_that_takes_nothing_is_refused_before_work_is_lost(place: Path) -> None:
    study = study_of(place)
    (place / "store").write_text("a file")
    with pytest.raises(LabError, match=r"store: .*: a shard leaves its results in the store"):
        shared(place, study, Shard(1, 3))
    assert not study.directory.exists()


def test_the_same_words_are_the_same_study(place: Path) -> None:
    one, two = study_of(place), study_of(place)
    other = Study.of_scenario(one.scenario, None, {"cc": "reno"}, None)
    assert one.directory == two.directory != other.directory
    assert one.directory != study_of(place, TEXT.replace("500ms", "600ms")).directory
