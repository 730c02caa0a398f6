"""An experiment's document from others: a mistake in it is one line, and no path leads out of its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import fields

from ewan.analysis.load import LoadError, experiment
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.origins import origin
from ewan.labs.record.experiment import Entry, ExperimentDocument, Stage, from_json, to_json
from ewan.labs.runtime import program as programs
from ewan.labs.runtime.base import LabError

RUN: dict[str, Any] = {
    "number": 1,
    "name": "a",
    "parameters": {},
    "seed": 1,
    "plan_sha256": "",
    "family": "",
    "directory": "runs/001",
    "expected_ns": 0,
    "status": "waiting",
    "error": None,
    "certificate": None,
    "verified": None,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clock": None}, "clock is None, not a string"),
        ({"clock": "sundial"}, "clock is 'sundial'"),
        ({"scenario": "../../x"}, "scenario is no name"),
        ({"files": {"../x": ""}}, "files name one outside of the experiment"),
        ({"stages": {}}, "stages has no key 'reservation'"),
        ({"stages": {"lunch": {"status": "waiting"}}}, "stages has an unknown key 'lunch'"),
        ({"colour": 1}, "has an unknown key 'colour'"),
        ({"confidence": "high"}, "confidence is 'high'"),
        ({"host": {}}, "host has no key 'kernel'"),
        ({"settings": {"a": 1}}, "settings.a is 1"),
        ({"deployed": {"lab": "x"}}, "deployed has no key 'id'"),
        ({"runs": {}}, "runs is {}"),
        ({"runs": [{**RUN, "directory": "../.."}]}, "runs[0].directory is '../..'"),
        ({"runs": [{**RUN, "number": "1"}]}, "runs[0].number is '1'"),
        ({"runs": [{**RUN, "colour": 1}]}, "runs[0] has an unknown key 'colour'"),
        ({"runs": [{**RUN, "disturbed": "all"}]}, "runs[0].disturbed is 'all'"),
        ({"runs": [[]]}, "runs[0] is []"),
        ({"runs": [{key: RUN[key] for key in RUN if key != "number"}]}, "runs[0] has no key 'number'"),
    ],
)
def test_a_document_that_is_none_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    Experiment.create(tmp_path, origin(), "virtual").save()
    path = tmp_path / "experiment.json"
    document = orjson.loads(path.read_bytes())
    document["runs"] = [RUN]
    path.write_bytes(orjson.dumps(document))
    assert Experiment.load(tmp_path).runs[0].directory == "runs/001"
    path.write_bytes(orjson.dumps(document | changes))
    with pytest.raises(LabError) as refusal:
        Experiment.load(tmp_path)
    assert f"experiment.json: not an experiment: {said}" in str(refusal.value)


@pytest.mark.parametrize("key", ["format", *(field.name for field in fields(ExperimentDocument) if field.required)])
def test_a_key_that_is_missing_is_named(key: str, tmp_path: Path) -> None:
    Experiment.create(tmp_path, origin(), "virtual").save()
    path = tmp_path / "experiment.json"
    document = orjson.loads(path.read_bytes())
    del document[key]
    path.write_bytes(orjson.dumps(document))
    said = "format is None" if key == "format" else f"not an experiment: has no key {key!r}"
    with pytest.raises(LabError, match=said):
        Experiment.load(tmp_path)
    with pytest.raises(LoadError, match=said):
        experiment(tmp_path)


def test_a_document_is_written_as_it_was_read(tmp_path: Path) -> None:
    """Sorted keys, without those that have their defaults."""
    made = Experiment.create(tmp_path, origin(), "live")
    made.document.deployed = None
    made.document.stages["execution"] = Stage(status="running", started="2026-01-02T03:04:05+00:00")
    made.document.runs.append(Entry(**RUN))
    made.save()
    text = (tmp_path / "experiment.json").read_bytes()
    assert to_json(from_json(text, tmp_path)) == text
    raw = orjson.loads(text)
    assert orjson.dumps(raw, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n" == text
    assert "deployed" not in raw and raw["runs"] == [RUN] and "certified_with" not in raw
    assert raw["stages"]["logs"] == {"status": "waiting"}


def test_a_program_of_wrong_types_is_refused() -> None:
    document: dict[str, Any] = {"format": "ewan-program/1", "probe": None, "commands": [], "longest_ns": 1}
    assert programs.from_json(orjson.dumps(document), 5).longest_ns == 1
    commands = {"commands": [{"node": "a"}]}
    wrong: list[dict[str, Any]] = [{"longest_ns": "1"}, commands, {"events": 1}, {"x": 1}, {"traffic": []}]
    for changes in wrong:
        with pytest.raises(ValueError, match="program"):
            programs.from_json(orjson.dumps(document | changes), 5)
