"""Targets of papers: the content of files, shapes as sentences, verdicts, and the remains of an interrupted call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.extras.papers import experiments, ledger, shapes, targets, verdicts
from ewan.extras.papers.experiments import TargetExperiment
from ewan.extras.papers.ledger import LedgerExperiment, PaperLedger
from ewan.extras.papers.shapes import MeasuredMean, MeasuredPoint
from ewan.extras.papers.targets import ENDING, SCALES, PaperTarget
from ewan.extras.papers.verdicts import PaperSummary
from ewan.labs.base import codec
from ewan.labs.record import figures, quantities
from ewan.labs.record.summary import PublishedBeside
from ewan.labs.spec import DescriptionError

GBIT = 1e9


def point(value: float, half: float | None = None, **parameters: str | int) -> MeasuredPoint:
    """A point with an aggregate goodput in Gbit/s."""
    low, high = (None, None) if half is None else ((value - half) * GBIT, (value + half) * GBIT)
    return MeasuredPoint(parameters, 1, {"aggregate goodput": MeasuredMean(value * GBIT, low, high, "bit/s")})


def holds(line: str, *points: MeasuredPoint) -> bool | None:
    return shapes.check(shapes.parse(line), points).holds


def test_what_grows_may_step_back_by_its_interval_and_no_more() -> None:
    line = "aggregate goodput grows with streams"
    assert holds(line, point(8, streams=1), point(9, streams=2), point(9.5, streams=10))
    assert not holds(line, point(8, streams=1), point(9, streams=2), point(8.9, streams=10))
    assert holds(line, point(8, 0.1, streams=1), point(9, 0.1, streams=2), point(8.9, 0.1, streams=10))
    assert not holds(line, point(8, 0.1, streams=1), point(7.9, 0.1, streams=2))
    assert holds("aggregate goodput falls with streams", point(8, streams=1), point(7, streams=2))
    assert holds(line, point(8, streams=1)) is None


def test_values_are_in_the_order_of_their_numbers() -> None:
    seen = shapes.check(
        shapes.parse("aggregate goodput grows with buffer"),
        [point(3, buffer="255pkt"), point(1, buffer="9pkt"), point(2, buffer="63pkt")],
    )
    assert seen.holds and seen.found == "1 Gbit/s → 2 Gbit/s → 3 Gbit/s"


def test_a_shape_holds_in_each_group_of_what_else_varies() -> None:
    line = "aggregate goodput at buffer=255pkt is more than at buffer=63pkt"
    groups = [point(2, cc="reno", buffer="255pkt"), point(1, cc="reno", buffer="63pkt")]
    assert holds(line, *groups, point(3, cc="bic", buffer="255pkt"), point(1, cc="bic", buffer="63pkt"))
    seen = shapes.check(
        shapes.parse(line), [*groups, point(1, cc="bic", buffer="255pkt"), point(3, cc="bic", buffer="63pkt")]
    )
    assert (seen.holds, seen.found) == (False, "1 Gbit/s against 3 Gbit/s (in 1 of 2)")


def test_what_follows_from_a_parameter_makes_no_groups() -> None:
    """A number of sources that a congestion level gives is not a second parameter."""
    assert holds("aggregate goodput grows with cg", point(1, cg="0.5", m=5), point(2, cg="1.0", m=10))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("aggregate goodput is largest at cc=bic", True),
        ("aggregate goodput is least at cc=bic", False),
        ("aggregate goodput at cc=bic is more than 1.9 times that at cc=reno", True),
        ("aggregate goodput at cc=bic is more than 2.1 times that at cc=reno", False),
        ("aggregate goodput at cc=reno is less than 0.6 times that at cc=bic", True),
        ("aggregate goodput at cc=bic is within 4% of that at cc=cubic", False),
        ("aggregate goodput at cc=bic is within 6% of that at cc=cubic", True),
        ("aggregate goodput is at most 2Gbit/s", True),
        ("aggregate goodput is at least 1.5Gbit/s", False),
        ("aggregate goodput is at least 1.5Gbit/s, where cc=bic", True),
        ("aggregate goodput is at least 1.5Gbit/s, where cc=fast", None),
    ],
)
def test_sentences(line: str, expected: bool | None) -> None:
    assert holds(line, point(1, cc="reno"), point(2, cc="bic"), point(1.9, cc="cubic")) is expected


def test_another_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match="grows with streams"):
        shapes.parse("goodput is nice")


TARGET = """
number: 1
title: a title
paper: a paper
about: what it found
scaled: nothing
experiments:
  main: {scenario: parallel-streams, set: {streams: "1,2"}}
  other: {scenario: parallel-streams, set: {streams: "1"}, seeds: 2}
numbers:
  - {metric: aggregate goodput, when: {streams: 1}, within: 1%, why: one run, because: the buffer, shown_by: other}
shapes:
  - {line: aggregate goodput grows with streams, paper: more is more}
"""


def target(folder: Path, text: str = TARGET) -> PaperTarget:
    file = folder / f"mine{ENDING}"
    file.write_text(text)
    return targets.read(file)


ANYWHERE = TARGET.replace("when: {streams: 1}, ", "")


def beside(here: float, half: float | None = None) -> PublishedBeside:
    """A published 8 Gbit/s, and the measured value."""
    low, high = (None, None) if half is None else ((here - half) * GBIT, (here + half) * GBIT)
    return PublishedBeside(
        source="S",
        when={"streams": 1},
        than=None,
        normalised=False,
        note="",
        parameters={"streams": 1},
        metric="aggregate goodput",
        paper=8 * GBIT,
        here=here * GBIT,
        low=low,
        high=high,
        unit="bit/s",
        difference=None,
    )


def summary(here: float, half: float | None = None) -> PaperSummary:
    return PaperSummary((point(here, streams=1), point(here + 1, streams=2)), (beside(here, half),))


@pytest.mark.parametrize(
    ("main", "other", "verdict"),
    [
        (summary(8.07), None, "agrees"),  # within 1 %
        (summary(8.2), None, "differs"),
        (summary(8.12, 0.15), None, "agrees"),  # the paper's is within the interval
        (summary(8.2, 0.3), None, "too uncertain"),
        (summary(8.01, 0.3), None, "too uncertain"),
        (summary(8.2, 0.1), None, "differs"),
        (summary(9), summary(8.07), "differs, because"),
        (summary(9), summary(8.4), "differs, because"),  # 60 % of the difference are gone
        (summary(9), summary(8.6), "differs"),
        (None, None, "–"),
    ],
)
def test_a_difference_is_explained_by_the_experiment_that_shows_it(
    tmp_path: Path, main: Any, other: Any, verdict: str
) -> None:
    outcome = verdicts.judge(target(tmp_path), {"main": main, "other": other})
    assert outcome.rows[0].verdict == verdict
    assert outcome.verdict == verdict if main else "–"
    if main:
        assert outcome.rows[1].verdict == "shape holds"


@pytest.mark.parametrize(
    ("paper", "here", "tolerance", "agrees"),
    [(0.99, 1.0, "1%", True), (0.99, 1.0001, "1%", False), (0.98, 1.0, "2%", True), (0.98, 1.0001, "2%", False)],
)
def test_a_tolerance_includes_its_bound(
    tmp_path: Path, paper: float, here: float, tolerance: str, agrees: bool
) -> None:
    """1 − 0.99 and 1 − 0.98 are more than 0.01 and 0.02 in binary."""
    own = codec.replace(beside(8), paper=paper, here=here, unit="share")
    text = ANYWHERE.replace("within: 1%", f"within: {tolerance}")
    outcome = verdicts.judge(target(tmp_path, text), {"main": PaperSummary((), (own,)), "other": None})
    assert (outcome.rows[0].verdict == "agrees") == agrees


def test_a_value_for_several_points_says_of_which_each_row_is(tmp_path: Path) -> None:
    """Without `when` a row is named by the varied parameters; dependent and constant ones are left out."""
    points: list[dict[str, str | int]] = [
        {"cc": cc, "m": 3, "cg": cg, "n": 10 * cg} for cc in ("reno", "bic") for cg in (1, 2)
    ]
    rows = [codec.replace(beside(8.07), when={}, parameters=each) for each in points]
    rows.append(codec.replace(beside(8.07), source="T", when={"cg": 2}, parameters=points[1]))
    outcome = verdicts.judge(target(tmp_path, ANYWHERE), {"main": PaperSummary((), tuple(rows)), "other": None})
    names = [row.what.removeprefix("aggregate goodput ") for row in outcome.rows[:5]]
    assert names == ["cc=reno cg=1", "cc=reno cg=2", "cc=bic cg=1", "cc=bic cg=2", "cg=2"]


def test_a_difference_is_explained_at_its_own_point(tmp_path: Path) -> None:
    def rows(*found: float) -> PaperSummary:
        each = zip(("reno", "bic"), found, strict=True)
        values = (codec.replace(beside(here), when={}, parameters={"cc": cc}) for cc, here in each)
        return PaperSummary((), tuple(values))

    outcome = verdicts.judge(target(tmp_path, ANYWHERE), {"main": rows(9, 9), "other": rows(9, 8.07)})
    assert [row.verdict for row in outcome.rows[:2]] == ["differs", "differs, because"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("title: a title", "titel: a title", r'unknown key of a target, write "title"'),
        ("grows with streams", "is nice", r"line .*write a line like"),
        ("line: aggregate", "line: agregate", r"unknown metric, write"),
        ("shown_by: other", "shown_by: anything", r"there is no such experiment, write"),
        (", shown_by: other", "", r"write both because and shown_by"),
        ("{scenario: parallel-streams, set: {streams: \"1,2\"}}", "{}", r"exactly one of"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(DescriptionError, match=rf"mine{ENDING}(:\d+)?: .*{says}"):
        target(tmp_path, TARGET.replace(old, new))


def test_equal_experiments_are_one() -> None:
    """Two targets that want the same runs share them."""
    first, second = targets.find("hstts-reverse"), targets.find("nxe-figure-4")
    assert experiments.wanted(first, "quick")["main"].key == experiments.wanted(second, "quick")["main"].key
    assert experiments.wanted(first, "quick")["main"].key != experiments.wanted(first, "full")["main"].key


def test_a_measurement_has_no_picture(tmp_path: Path) -> None:
    text = (targets.FOLDER / f"ewan-figures-5-6{ENDING}").read_text()
    file = tmp_path / f"mine{ENDING}"
    file.write_text(text + "picture: goodput over time\n")
    with pytest.raises(DescriptionError, match="picture"):
        targets.read(file)


def test_an_unknown_target_has_a_nearest() -> None:
    with pytest.raises(DescriptionError, match='write "nxe-table-4"'):
        targets.find("nxe-table4")


def _picture_can_be_drawn(target: PaperTarget, first: TargetExperiment) -> None:
    picture = target.description.picture
    if picture is not None:
        assert first.scenario is not None
        values: dict[str, list[Any]] = {}
        for run in first.scenario.runs(first.settings, first.scale, first.seeds):
            for key, value in run.parameters.items():
                values.setdefault(key, []).append(value)
        figures.check(picture, values)


@pytest.mark.parametrize("name", targets.known())
def test_every_target_can_be_run(name: str) -> None:
    """All its experiments have runs at both scales, and its numbers are measured and published there."""
    own = targets.find(name)
    for scale in SCALES:
        wanted = experiments.wanted(own, scale)
        for each in wanted.values():
            if each.scenario is not None:
                assert len(each.scenario.runs(each.settings, each.scale, each.seeds)) > 0
        _picture_can_be_drawn(own, wanted[own.first])
    for number in own.description.numbers:
        scenario = experiments.wanted(own, "quick")[number.of or own.first].scenario
        assert scenario is not None
        published = [each for each in scenario.document.beside if each.metric == number.metric]
        assert any(each.source.startswith(number.source or "") for each in published), number
    for curve in own.description.shapes:
        scenario = experiments.wanted(own, "quick")[curve.of or own.first].scenario
        if scenario is not None and quantities.parse(curve.line.metric).selection is not None:
            assert curve.line.metric in scenario.document.metrics, (
                f"{scenario.name} does not ask for {curve.line.metric}"
            )


def test_an_interrupted_call_goes_on_and_a_complete_one_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = ledger.opened("all", "quick", "abc", again=False)
    book.experiments["key"] = LedgerExperiment("results/x", "complete", 3.0)
    book.save()
    found = ledger.opened("all", "quick", "abc", again=False)
    assert found.experiments == {"key": LedgerExperiment("results/x", "complete", 3.0)}
    assert not ledger.opened("all", "quick", "other version", again=False).experiments
    assert not ledger.opened("all", "quick", "abc", again=True).experiments
    book.end([])
    assert not ledger.opened("all", "quick", "abc", again=False).experiments
    assert isinstance(found, PaperLedger)
