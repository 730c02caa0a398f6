"""Runs shown again, as the page asks for them: their data, pieces of series, refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ewan.analysis.tests import synthetic
from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import Access, names_of
from ewan.extras.studio.tests.conftest import DescribedClient
from ewan.labs import spec
from ewan.labs.compile import compile as compile_spec
from ewan.labs.context import Context
from ewan.labs.host import virtual_facts
from ewan.labs.plan import to_json

PORT = 8765
LAB = "topology: {dumbbell: {pairs: 4}}\nrtt: 20ms\nwan: {rate: 1Gbit/s}\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an experiment of one run, whose core was changed at 5 s, failed at 6 s and mended at 7 s."""
    here = tmp_path_factory.mktemp("here")
    place = synthetic.experiment(here / "results/study", [{"congestion": "cubic"}], seeds=[1], seconds=10)
    run = place / "runs/001"
    run.joinpath("plan.json").write_bytes(to_json(compile_spec(spec.parse(LAB, Path("x.lab.yaml")), virtual_facts())))
    made = {"link": "core", "direction": "forward", "error": None, "at_ns": 0}
    told = [
        made | {"applied_ns": 5 * 10**9, "change": {"rate_bps": 10**8}},
        made | {"applied_ns": 6 * 10**9, "change": {}, "down": True},
        made | {"applied_ns": 7 * 10**9, "change": {}, "down": False},
    ]
    run.joinpath("events.json").write_text(json.dumps({"format": "ewan-events/1", "events": told}))
    synthetic.vouch(place)
    return here


@pytest.fixture
def client(here: Path, tmp_path: Path) -> Iterator[TestClient]:
    access = Access(names_of("127.0.0.1", PORT), PORT, view=True)
    (tmp_path / "page").mkdir()
    headers = {"authorization": f"Bearer {access.token}"}
    app = make(Context.of({"EWAN_STATE": str(tmp_path / "state")}), here, tmp_path / "page", access)
    with DescribedClient(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        yield client


def told(client: TestClient, path: str) -> Any:
    answer = client.get(f"/api/replays/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_nodes_stand_where_the_scenario_put_them(client: TestClient, here: Path) -> None:
    """The lab may be that of a file beside it; the places are computed when the scenario cannot be read any more."""

    def at() -> dict[str, tuple[float, float]]:
        return {node["name"]: (node["x"], node["y"]) for node in told(client, "placed/1")["drawing"]["nodes"]}

    shutil.copytree(here / "results/study", here / "results/placed")
    before = at()
    assert before["left1"] != (-70, 40)
    (here / "own.lab.yaml").write_text(LAB + "layout: {left1: [-70, 40], nobody: [1, 1]}\n")
    scenario = here / "results/placed/scenario.yaml"
    scenario.write_text("lab: own.lab.yaml\nsteps: [{name: bulk, from: left1, to: right1, for: 1s, bulk: {}}]\n")
    asked: dict[str, object] = {"file": str(here / "study.scenario.yaml"), "scale": None, "settings": {}, "seeds": None}
    (here / "results/placed/settings.json").write_text(json.dumps(asked))
    assert at() == before | {"left1": (-70, 40)}
    scenario.write_text("lab: [\n")
    assert at() == before
    shutil.rmtree(here / "results/placed")


def test_a_run_has_its_drawing_its_events_and_its_flows(client: TestClient) -> None:
    """The data are for viewers, too, who may change nothing."""
    runs = told(client, "study")
    assert [(run["number"], run["status"]) for run in runs["runs"]] == [(1, "complete")] and runs["more"] == 0
    shown = told(client, "study/1")
    assert {"left1", "r1"} <= {node["name"] for node in shown["drawing"]["nodes"]}
    assert [(event["at_ns"], event["kind"]) for event in shown["events"]] == [
        (5 * 10**9, "set"),
        (6 * 10**9, "fail"),
        (7 * 10**9, "mend"),
    ]
    (change,) = shown["changes"]
    assert change["at_ns"] == 5 * 10**9
    (link,) = change["links"]
    assert (link["name"], link["forward"]["rate_bps"], link["backward"]["rate_bps"]) == ("core", 10**8, 10**9)
    assert len(shown["flows"]) == 4 and shown["flows"][0]["links"] == [["core", "forward"]]
    assert shown["end_ns"] > 10**10 and shown["levels_ns"][0] == 10**8


def test_series_come_in_pieces(client: TestClient) -> None:
    shown = told(client, "study/1")
    piece = told(client, f"study/1/links/{len(shown['levels_ns']) - 1}/0")
    assert piece["bins"] * piece["bin_ns"] >= shown["end_ns"] and piece["bins"] == shown["bins"]
    (core,) = [link for link in piece["links"] if link["direction"] == "forward"]
    assert max(core["rate_bps"]) > 10**8 and len(core["queue_bytes"]) == piece["bins"]
    flows = told(client, "study/1/flows")
    assert len(flows["flows"]) == 4 and len(flows["flows"][0]["rtt_ns"]) == flows["bins"]
    assert "polars" not in json.dumps(flows)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nothing", "no such experiment"),
        ("..%2Fresults%2Fstudy", ""),
        ("%2e%2e", ""),
        (".hidden", "write the name"),
        ("study/2", "has no run 2: it has 1"),
        ("study/-1", "whole number"),
        ("study/99999999999999999999", "whole number"),
        ("study/one/flows", "whole number"),
        ("study/1/links/9/0", "level 9"),
        ("study/1/links/0/77", "piece 77"),
        ("study/1/links/0/0x1", "whole number"),
    ],
)
def test_what_there_is_not_is_refused_in_a_line(client: TestClient, path: str, words: str) -> None:
    answer = client.get(f"/api/replays/{path}")
    assert answer.status_code in (400, 404), answer.text
    if words:
        assert words in answer.json()["error"] and "\n" not in answer.json()["error"], answer.text


def test_an_experiment_that_is_elsewhere_is_not_followed(client: TestClient, here: Path, tmp_path: Path) -> None:
    shutil.copytree(here / "results/study", tmp_path / "other")
    link = here / "results/linked"
    link.symlink_to(tmp_path / "other")
    try:
        assert client.get("/api/replays/linked").status_code == 400
    finally:
        link.unlink()


def test_a_run_without_series_says_so(client: TestClient, here: Path) -> None:
    place = shutil.copytree(here / "results/study", here / "results/bare")
    try:
        for name in ("links", "series", "goodput"):
            (place / f"runs/001/{name}.parquet").unlink()
        synthetic.vouch(place)
        shown = told(client, "bare/1")
        assert shown["levels_ns"] == [] and shown["end_ns"] > 0
        assert told(client, "bare/1/flows")["flows"] == []
        assert "there are 0" in client.get("/api/replays/bare/1/links/0/0").json()["error"]
        (place / "runs/001/plan.json").unlink()
        synthetic.vouch(place)
        assert "plan.json" in client.get("/api/replays/bare/1").json()["error"]
    finally:
        shutil.rmtree(place)


def test_a_run_that_goes_on_is_read_again(client: TestClient, here: Path) -> None:
    """The kept data of an experiment are not older than the experiment."""
    place = shutil.copytree(here / "results/study", here / "results/going")
    try:
        assert len(told(client, "going/1")["events"]) == 3
        (place / "runs/001/events.json").write_text('{"format": "ewan-events/1", "events": []}')
        synthetic.vouch(place)
        assert told(client, "going/1")["events"] == []
    finally:
        shutil.rmtree(place)
