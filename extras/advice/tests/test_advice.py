"""Labs derived from characterisations, objectives as scenarios, rankings; and advice where the answer is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from ewan.analysis import comparisons
from ewan.cli import main
from ewan.extras.advice import objectives, ranking
from ewan.extras.advice.derived_lab import ASSUMED_BUFFER, crossing, derive, rounded
from ewan.extras.advice.objectives import OBJECTIVES, AdviceRequest, Word
from ewan.generator import scenario as scenarios
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.record import Uncertainty
from ewan.labs.record.characterisation import Characterisation, Estimate, PathDirection, to_json
from ewan.labs.record.summary import Summary
from ewan.labs.spec import parse
from tests import summaries


def estimate(value: float | None, unit: Any, expanded: float = 0.0, note: str = "") -> Estimate:
    known = None if value is None else Uncertainty({"finite sample": expanded / 2}, expanded)
    return Estimate(value, unit, known, note=note)


def path(
    rate: float = 97_529_258.0,
    rtt_ms: float = 40.0164,
    buffer: float | None = 242_817.0,
    loss: float = 1_200_000.0,
    cross: float = 0.0,
) -> Characterisation:
    def way(crossing: float) -> PathDirection:
        return PathDirection(
            estimate(rate, "bit/s", 42.0),
            estimate(buffer, "bytes", 1_800.0, "not filled"),
            estimate(None, "ns"),
            estimate(loss, "ppb", 600_000.0),
            estimate(crossing, "bit/s", 450_000.0),
        )

    rtt = estimate(rtt_ms * NS_PER_MS, "ns", 144_000.0)
    return Characterisation("left1", "right1", "dumbbell", "virtual", "", 1500, 100, rtt, way(cross), way(0.0))


@pytest.mark.parametrize(
    ("value", "expanded", "shown"),
    [(97_529_258.4, 42.0, 97_529_258.0), (242_817.0, 1_800.0, 242_800.0), (0.0, 5.0, 0.0), (1.0, 500.0, 1.0)],
)
def test_values_have_two_digits_of_their_uncertainty(value: float, expanded: float, shown: float) -> None:
    assert rounded(value, expanded) == pytest.approx(shown)


def test_the_derived_lab_does_what_was_measured() -> None:
    derived = derive(path(), 4)
    assert derived.assumed == ()
    plan = compile(parse(derived.text, Path("derived.lab.yaml")), host.virtual_facts())
    (link,) = plan.links
    for way in (link.forward, link.backward):
        assert way.rate_bps == 97_529_258
        assert way.queue.limit_bytes == 242_800
        assert way.framing.overhead_bytes == 0
        assert codec.data_of(way.loss)["loss_ppb"] == 1_200_000
    # 100 B take 8.2 µs at the bottleneck, once each way: the rest is propagation.
    assert plan.pairs[0].rtt_ns == pytest.approx(40 * NS_PER_MS, abs=2_000)
    assert len(plan.pairs) == 4
    assert "capacity 97.5293 Mbit/s ± 42 bit/s" in derived.text


def test_what_was_not_found_is_assumed_and_said_or_refused() -> None:
    derived = derive(path(buffer=None), 1)
    assert f"buffer: {ASSUMED_BUFFER}" in derived.text
    assert [line.split(":")[0] for line in derived.assumed] == ["forward", "backward"]
    assert derived.assumed[0] in derived.text and "(not filled)" in derived.assumed[0]
    found = path()
    without = codec.replace(found.backward, capacity=estimate(None, "bit/s", note="too few"))
    with pytest.raises(ValueError, match=r"backward.capacity has no value \(too few\): write one, in bit/s"):
        derive(codec.replace(found, backward=without), 1)


def test_doubts_are_said_and_a_full_path_is_refused() -> None:
    found = path()
    doubted = codec.replace(found.forward, doubts=("the wait varies",))
    derived = derive(codec.replace(found, forward=doubted), 1)
    assert derived.assumed == ("forward: the wait varies: the derived lab is a guess",)
    assert "# forward: the wait varies" in derived.text
    with pytest.raises(ValueError, match=r"forward.cross leaves nothing of forward.capacity"):
        derive(path(cross=99e6), 1)


def wanted(objective: Word = "completion", **changes: Any) -> AdviceRequest:
    usual = AdviceRequest(objective, ("reno", "bbr"), 4, 3, 1_000_000, 5 * NS_PER_SECOND)
    return dataclasses.replace(usual, **changes)


@pytest.mark.parametrize("objective", list(OBJECTIVES))
@pytest.mark.parametrize("cross", [0.0, 20e6])
def test_an_objective_is_a_scenario_that_can_be_run(objective: Word, cross: float) -> None:
    found = path(cross=cross)
    derived = derive(found, objectives.pairs(found, 4))
    scenario = scenarios.parse(objectives.scenario(found, derived, wanted(objective)), Path("advice.scenario.yaml"))
    runs = scenario.runs()
    assert [dict(run.parameters)["congestion"] for run in runs] == ["reno"] * 3 + ["bbr"] * 3
    _, plan, schedule = next(iter(runs.scheduled(host.virtual_facts(), "virtual")))
    assert len(plan.pairs) == 4 + bool(cross)
    assert len(schedule.document.flows) == 4 + bool(cross)
    assert scenario.document.metrics[0] == OBJECTIVES[objective].metric


def test_others_send_what_was_measured_of_them() -> None:
    found = path(cross=20e6)
    assert crossing(found.forward) == 20e6
    assert crossing(found.backward) == 0
    text = objectives.scenario(found, derive(found, 5), wanted())
    assert "mean: 600us" in text and "size: 1472B" in text and "from: left5" in text
    # No more than its uncertainty: no other sends.
    assert objectives.pairs(path(cross=400_000.0), 4) == 4


def test_the_usual_amount_is_what_the_path_carries_for_a_while() -> None:
    assert objectives.usual_length_ns(path()) == 20 * NS_PER_SECOND
    assert objectives.usual_length_ns(path(rtt_ms=500)) == 50 * NS_PER_SECOND
    assert objectives.usual_length_ns(path(rate=9.6e9)) == NS_PER_SECOND  # 800 000 packets
    assert objectives.usual_volume_bytes(path(rate=100e6, cross=20e6), 4) == 50_000_000


def summary(metric: str, values: dict[str, list[float]], better_unit: str = "ns") -> Summary:
    runs: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    for protocol, each in values.items():
        parameters = {"congestion": protocol}
        for seed, value in enumerate(each):
            own = {"number": len(runs), "parameters": parameters, "seed": seed, "status": "complete"}
            runs.append({**own, "metrics": {metric: {"value": value, "unit": better_unit}}})
        mean = sum(each) / len(each) if each else 0.0
        metrics = {metric: {"mean": mean, "low": mean, "high": mean}} if each else {}
        points.append({"parameters": parameters, "metrics": metrics})
    return summaries.summary(points, runs)


def test_the_best_comes_first_and_ties_are_told() -> None:
    values = {"reno": [30.0, 31.0, 29.5], "bbr": [10.0, 11.0, 12.0], "cubic": [10.5, 10.8, 12.4], "bic": list[float]()}
    found = ranking.ranked(summary("mean completion time", values), "mean completion time", comparisons.of)
    assert [(place.protocol, place.rank) for place in found] == [("bbr", 1), ("cubic", 1), ("reno", 3), ("bic", None)]
    assert found[1].tie and not found[2].tie
    assert "not shown beyond chance" in ranking.words(found[1], "bbr")
    assert ranking.words(found[2], "bbr").startswith("+174.2 % (p = ")
    said = ranking.verdict(found, "mean completion time")
    assert said == "bbr by mean completion time; cubic: no difference to it shown beyond chance"


def test_where_more_is_better_the_most_comes_first() -> None:
    values = {"reno": [0.9, 0.91, 0.9], "cubic": [0.99, 0.995, 0.993]}
    found = ranking.ranked(summary("fairness per flow", values, "ratio"), "fairness per flow", comparisons.of)
    assert [(place.protocol, place.rank) for place in found] == [("cubic", 1), ("reno", 2)]
    assert "better than all others" in ranking.verdict(found, "fairness per flow")


def test_one_seed_shows_nothing() -> None:
    found = ranking.ranked(
        summary("mean completion time", {"a": [1.0], "b": [9.0]}), "mean completion time", comparisons.of
    )
    assert [place.rank for place in found] == [1, 1]
    assert "not tested" in ranking.words(found[1], "a")
    nothing = ranking.ranked(summary("mean completion time", {"a": []}), "mean completion time", comparisons.of)
    assert "nothing to advise" in ranking.verdict(nothing, "mean completion time")


def called(*words: str, folder: Path) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, ["suite", "advise", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["path.json", "--objective", "cheap"], "'cheap' is not one of"),
        (["path.json"], "--objective"),
        (["none.json", "--objective", "smooth"], "none.json: No such file"),
        (["other.json", "--objective", "smooth"], "format is 'ewan-certificate/2'"),
        (["text.json", "--objective", "smooth"], "is no JSON"),
        (["path.json", "--objective", "smooth", "--cc", "cubic,bbrr"], "congestion control bbrr"),
        (["path.json", "--objective", "smooth", "--cc", ","], "write the names of congestion controls"),
        (["path.json", "--objective", "smooth", "--volume", "1GB"], "send for a time: write --for"),
        (["path.json", "--objective", "completion", "--for", "1s"], "write --volume"),
        (["path.json", "--objective", "completion", "--volume", "1"], 'write a volume as "1MB"'),
        (["path.json", "--objective", "fairness", "--for", "0s"], "there is nothing to send"),
    ],
)
def test_what_cannot_be_advised_is_refused_in_one_line(words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "path.json").write_bytes(to_json(path()))
    (tmp_path / "other.json").write_text('{"format": "ewan-certificate/2"}')
    (tmp_path / "text.json").write_text("hello")
    status, output = called(*words, folder=tmp_path)
    assert status == 2
    assert says in output
    assert output.count("\n") == 1
    assert not (tmp_path / "results").exists()


def advised(folder: Path, found: Characterisation, *words: str) -> tuple[dict[str, Any], list[str]]:
    """The answer, and the protocols in its order."""
    (folder / "path.json").write_bytes(to_json(found))
    status, output = called("path.json", *words, "--output", "own.lab.yaml", "--json", folder=folder)
    assert status == 0, output
    answer = orjson.loads(output[output.index("{\n") :])
    return answer, [place["protocol"] for place in answer["ranking"]]


@pytest.mark.virtual
def test_a_large_buffer_wants_bbr_before_cubic(tmp_path: Path) -> None:
    """Half a second of buffer behind 20 Mbit/s and 20 ms."""
    found = path(rate=19.5e6, rtt_ms=20.0, buffer=1_200_000.0, loss=0.0)
    words = ("--objective", "smooth", "--cc", "cubic,bbr", "--flows", "2", "--for", "8s")
    answer, order = advised(tmp_path, found, *words)
    assert order == ["bbr", "cubic"]
    assert [place["rank"] for place in answer["ranking"]] == [1, 2]
    bbr, cubic = (place["metrics"]["queueing delay p95"]["mean"] for place in answer["ranking"])
    assert 5 * bbr < cubic
    # What it says is what ran: the scenario, in the lab that it printed, and its summary.
    directory = tmp_path / answer["directory"]
    assert (directory / "scenario.yaml").read_text() == answer["scenario"]
    assert (tmp_path / "own.lab.yaml").read_text() == answer["lab"]
    planned = compile(parse(answer["lab"], Path("own.lab.yaml")), host.virtual_facts())
    ran = orjson.loads((directory / "runs/001/plan.json").read_bytes())
    assert ran["links"][0]["forward"]["rate_bps"] == planned.links[0].forward.rate_bps == 19_500_000
    limit = planned.links[0].forward.queue.limit_bytes
    assert ran["links"][0]["forward"]["queue"]["limit_bytes"] == limit == 1_200_000
    points = orjson.loads((directory / "summary.json").read_bytes())["points"]
    means = {each["parameters"]["congestion"]: each["metrics"]["queueing delay p95"]["mean"] for each in points}
    assert means == {"bbr": bbr, "cubic": cubic}


@pytest.mark.virtual
def test_loss_before_a_short_buffer_wants_bbr_or_scalable_before_reno(tmp_path: Path) -> None:
    """1 % of loss and 20 packets of buffer on 50 Mbit/s and 40 ms."""
    found = path(rate=48.8e6, rtt_ms=40.0, buffer=30_000.0, loss=10_000_000.0)
    words = ("--objective", "completion", "--volume", "2MB", "--cc", "reno,scalable,bbr", "--flows", "2")
    answer, order = advised(tmp_path, found, *words)
    assert order[-1] == "reno"
    assert answer["ranking"][0]["rank"] == 1 and answer["ranking"][-1]["rank"] == 3
