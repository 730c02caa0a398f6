"""An experiment's document from others: what is wrong with it is one line, and nothing leads out of its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from generator.engine import stored
from generator.engine.experiment import Experiment
from labs.runtime.base import LabError

FACTS = {"scenario": "x", "clock": "virtual", "unverified": False}
RUN = {
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
        ({"clock": None}, "clock is None"),
        ({"clock": "sundial"}, "clock is neither live nor virtual"),
        ({"scenario": "../../x"}, "scenario is no name"),
        ({"files": {"../x": ""}}, "files name one outside of the experiment"),
        ({"stages": {}}, "stages are not those of an experiment"),
        ({"runs": {}}, "runs is {}"),
        ({"runs": [{**RUN, "directory": "../.."}]}, "a run's directory is none of the experiment"),
        ({"runs": [{**RUN, "number": "1"}]}, "runs[0].number is '1'"),
        ({"runs": [{**RUN, "colour": 1}]}, "runs[0] has an unknown key 'colour'"),
        ({"runs": [[]]}, "runs[0] is []"),
    ],
)
def test_a_document_that_is_none_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    Experiment.create(tmp_path, FACTS).save()
    path = tmp_path / "experiment.json"
    document = orjson.loads(path.read_bytes())
    document["runs"] = [RUN]
    path.write_bytes(orjson.dumps(document))
    assert Experiment.load(tmp_path).runs[0].directory == "runs/001"
    path.write_bytes(orjson.dumps(document | changes))
    with pytest.raises(LabError) as refusal:
        Experiment.load(tmp_path)
    assert f"experiment.json: not an experiment: {said}" in str(refusal.value)


def test_a_program_of_wrong_types_is_refused() -> None:
    document: dict[str, Any] = {"format": "ewan-program/1", "probe": None, "commands": [], "longest_ns": 1}
    assert stored.program(orjson.dumps(document), 5).longest_ns == 1
    commands = {"commands": [{"node": "a"}]}
    wrong: list[dict[str, Any]] = [{"longest_ns": "1"}, commands, {"events": 1}, {"x": 1}, {"traffic": []}]
    for changes in wrong:
        with pytest.raises(ValueError, match="program"):
            stored.program(orjson.dumps(document | changes), 5)
