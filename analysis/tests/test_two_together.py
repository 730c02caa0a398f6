"""Two experiments together: the differences of their certificates, and figures of both on the same axes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ewan.analysis import load, single_figure
from ewan.analysis.cli import plot_command
from ewan.analysis.compare.certificates import of_certificates
from ewan.analysis.compare.overlaid import OverlaidResults
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import PAGE
from ewan.analysis.tests import synthetic
from ewan.labs.base.codec import replace
from ewan.labs.context import Context
from ewan.labs.record import Certificate, Row, Uncertainty
from ewan.labs.record.figures import parse

pytestmark = pytest.mark.slow


def certified(*rows: Row) -> Certificate:
    return replace(synthetic.certificate(), rows=rows)


def row(measured: float | None, expanded: float = 0.0, **more: object) -> Row:
    known = Row(
        "core", "forward", "rate", "bit/s", 1e7, measured, 0.0, 1e5, "ok", uncertainty=Uncertainty({}, expanded)
    )
    return replace(known, **more)


def test_what_is_measured_within_both_uncertainties_is_the_same() -> None:
    assert of_certificates(certified(row(9.99e6, 2e4)), certified(row(1.002e7, 2e4))) == []
    (apart,) = of_certificates(certified(row(9.99e6, 1e4)), certified(row(1.002e7, 1e4)))
    assert apart == ("core → rate", "9.99 Mbit/s of 10 Mbit/s ± 100 kbit/s, ok",
                     "10.02 Mbit/s of 10 Mbit/s ± 100 kbit/s, ok")  # fmt: skip


@pytest.mark.parametrize("more", [{"configured": 2e7}, {"tolerance": 2e5}, {"verdict": "outside"}])
def test_what_was_asked_and_judged_differs_or_not(more: dict[str, object]) -> None:
    found = of_certificates(certified(row(1e7, 1e6)), certified(row(1e7, 1e6, **more)))
    assert [each.what for each in found if each.what != "verdict"] == ["core → rate"]
    assert ("verdict" in {each.what for each in found}) == ("verdict" in more)


def test_a_lab_without_a_certificate_says_so() -> None:
    assert of_certificates(None, None) == []
    assert of_certificates(None, certified(row(1e7))) == [("certificate", "none", "verified")]
    (missing,) = of_certificates(certified(row(1e7)), certified(row(1e7), row(1e7, quantity="loss")))
    assert (missing.what, missing.first) == ("core → loss", "–")


def two(place: Path, second: Sequence[dict[str, str]], **told: str) -> tuple[Path, Path]:
    """The first has cubic and reno over 1BDP."""
    one, other = place / "one", place / "other"
    points = [{"congestion": each, "buffer": "1BDP"} for each in ("cubic", "reno")]
    synthetic.experiment(one, points, seeds=(1, 2), pairs=2, seconds=3)
    synthetic.experiment(other, second, seeds=(1, 2, 3), pairs=2, seconds=3, told=dict(told))
    return one, other


def test_what_each_has_one_value_of_tells_them_apart(tmp_path: Path) -> None:
    one, other = two(tmp_path, [{"congestion": each, "buffer": "2BDP"} for each in ("cubic", "bic")])
    both = OverlaidResults(load.experiment(one), load.experiment(other))
    assert both.names == ("buffer = 1BDP", "buffer = 2BDP") and both.varied == ("experiment", "congestion")
    assert [run.number for run in both.runs] == list(range(1, 11))
    found = both.summary([])
    assert [(*point.parameters.values(), point.runs) for point in found.points] == [
        ("buffer = 1BDP", "cubic", (1, 2)),
        ("buffer = 1BDP", "reno", (3, 4)),
        ("buffer = 2BDP", "cubic", (5, 6, 7)),
        ("buffer = 2BDP", "bic", (8, 9, 10)),
    ]


def test_equal_ones_are_the_first_and_the_second(tmp_path: Path) -> None:
    one, other = two(tmp_path, [{"congestion": each, "buffer": "1BDP"} for each in ("cubic", "reno")], name="again")
    both = OverlaidResults(load.experiment(one), load.experiment(other))
    assert both.names == ("first", "second") and both.varied == ("experiment", "congestion")


@pytest.mark.parametrize(
    "line", ["goodput by congestion", "goodput over time", "cdf of rtt", "goodput against rtt p95"]
)
def test_a_figure_of_both_has_the_runs_of_both(tmp_path: Path, line: str) -> None:
    one, other = two(tmp_path, [{"congestion": each, "buffer": "2BDP"} for each in ("cubic", "bic")])
    _, drawing = single_figure.drawn(one, parse(line), PAGE, beside=other)
    rows = list(csv.DictReader(drawing.csv.splitlines()))
    assert {row["experiment"] for row in rows} == {"buffer = 1BDP", "buffer = 2BDP"}
    assert {row["congestion"] for row in rows} == {"cubic", "reno", "bic"}


def test_a_figure_of_both_may_name_the_experiment(tmp_path: Path) -> None:
    one, other = two(tmp_path, [{"congestion": each, "buffer": "2BDP"} for each in ("cubic", "bic")])
    line = "goodput by experiment, lines congestion, where congestion=cubic"
    _, drawing = single_figure.drawn(one, parse(line), PAGE, beside=other)
    assert len(drawing.csv.splitlines()) == 3
    assert "runs 1–2, 5–7, seeds 1–3. Run 5 and those after it are run 1 and so on of other." in drawing.caption
    with pytest.raises(FigureError, match="no such parameter"):
        single_figure.drawn(one, parse("goodput by experiment"), PAGE)


def test_many_runs_are_drawn_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process could read only the first experiment."""
    monkeypatch.setattr("ewan.analysis.side_by_side.FEWEST_RUNS", 2)
    monkeypatch.setattr("ewan.analysis.side_by_side.cpus", lambda: 2)
    one, other = two(tmp_path, [{"congestion": "bic", "buffer": "2BDP"}])
    _, drawing = single_figure.drawn(one, parse("goodput over time"), PAGE, beside=other)
    rows = list(csv.DictReader(drawing.csv.splitlines()))
    assert {row["experiment"] for row in rows} == {"buffer = 1BDP", "buffer = 2BDP"}


def test_ewan_plot_draws_both(tmp_path: Path) -> None:
    one, other = two(tmp_path, [{"congestion": each, "buffer": "2BDP"} for each in ("cubic", "bic")])

    def plot(*words: str) -> Result:
        context = Context.of({"PATH": "/usr/bin"})
        return CliRunner().invoke(plot_command, [str(one), "goodput by congestion", *words], obj=context)

    done = plot("--beside", str(other), "--output", str(tmp_path / "both.svg"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "both.svg").read_text().startswith("<?xml") and "2BDP" in (tmp_path / "both.csv").read_text()
    refused = plot("--beside", str(tmp_path / "nothing"))
    assert refused.exit_code == 2 and "there is no such directory" in refused.output
