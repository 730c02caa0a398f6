"""A lab that differs from its plan is refused with the reason, or runs with a record of that."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from ewan.experiments.engine import engine, preparation, verification
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts
from ewan.experiments.tests.engines import CONTEXT, TEXT, begun, certificate, jobs, parts
from ewan.experiments.tests.origins import origin
from ewan.labs import routes
from ewan.labs.base import codec
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate


def test_plans_that_differ_by_their_seed_are_one_family() -> None:
    one, two = jobs()
    assert one.entry.plan_sha256 != two.entry.plan_sha256 and one.entry.family == two.entry.family
    (other, _) = jobs(TEXT.replace("20ms", "21ms"))
    assert other.entry.family != one.entry.family


@pytest.mark.parametrize(
    ("clock", "verdict", "says"),
    [
        ("live", "not measured", "beyond what this host can measure: core rate (too busy): --runtime virtual can"),
        ("live", "outside", "outside tolerance: core rate"),
        ("live", "ok", ""),
        ("virtual", "not measured", ""),
    ],
)
def test_what_a_host_cannot_show_is_not_believed(clock: Any, verdict: Any, says: str) -> None:
    (first, _) = jobs()
    made = certificate(first.plan, verdict)
    row = codec.replace(made.rows[0], note="too busy")
    assert verification.refusal(codec.replace(made, rows=(row,), clock=clock)) == says


def test_a_lab_outside_its_tolerances_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(verification.UnverifiedLabError, match="run 1: outside tolerance: core rate: nothing was run"):
        begun(tmp_path, "outside", unverified=False)
    document = orjson.loads((tmp_path / "experiment.json").read_bytes())
    assert document["status"] == "refused"
    assert [run["status"] for run in document["runs"]] == ["waiting", "waiting"]
    assert not list(tmp_path.glob("runs/*/flows.parquet"))


def test_a_lab_whose_routes_are_not_found_is_refused_with_the_reason(tmp_path: Path) -> None:
    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        raise routes.NotConvergedError("OSPF has not converged after 120s, no route from left1 to right1")

    without = dataclasses.replace(parts("ok"), certify=certify)
    facts = Facts({}, origin(scenario="engine"))
    says = "^lab engine of run 1: OSPF has not converged after 120s, no route from left1 to right1: nothing was run$"
    with pytest.raises(verification.UnverifiedLabError, match=says):
        prepared = preparation.prepare(jobs(), facts, virtual=True, directory=tmp_path, unverified=True)
        engine.run(prepared, parts=without, context=CONTEXT)
    assert orjson.loads((tmp_path / "experiment.json").read_bytes())["status"] == "refused"


def test_unverified_runs_all_the_same_and_the_record_says_so(tmp_path: Path) -> None:
    assert begun(tmp_path, "outside", unverified=True) == 0
    document = orjson.loads((tmp_path / "experiment.json").read_bytes())
    assert document["unverified"] is True
    assert [run["verified"] for run in document["runs"]] == [False, False]
    assert pl.read_parquet(tmp_path / "runs/001/flows.parquet")["received_bytes"][0] > 1e5


def test_a_killed_verification_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path, origin(), "virtual")
    first = jobs()[0]
    made.add(first)
    scratch = tmp_path / f"certificates/.{first.entry.family[:12]}"
    (scratch / "root/proc").mkdir(parents=True)
    (scratch / "uml").mkdir()
    seen: list[bool] = []

    def certify(context: Context, plan: Plan, place: Path, virtual: bool, stop: threading.Event) -> Certificate:
        seen.append(place.exists())
        return certificate(plan, "ok")

    verification.certify(CONTEXT, made, made.runs, dataclasses.replace(parts("ok"), certify=certify), None, 1)
    assert seen == [False] and not scratch.exists()
