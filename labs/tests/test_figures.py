"""The grammar of figures: lines give what they say, and what is wrong is named by its clause."""

from __future__ import annotations

import pytest

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import figures
from ewan.labs.record.columns import COLUMNS
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.series import SAMPLES, SERIES, Samples, Series

LINES = (
    "goodput by buffer, lines congestion, facets loss",
    "cdf of rtt, lines buffer",
    "rtt over time, facets buffer",
    "aggregate goodput of each step by buffer, points all, scale bdp",
    "utilisation by buffer and rtt, scale log",
    "goodput by buffer, scale log, values log",
    "goodput against queueing delay, lines congestion",
    "box of completion time of cross by buffer",
    "shares of each step over time, run 2, from 10s, to 40s",
    "queue of core backward over time, band",
    "completion time by congestion, relative to reno of congestion, bars, where rtt=10ms and loss=0.1%",
    "goodput of own by own and other, harm against alone of other, facets rtt",
    "timeline, run 3",
    "cwnd over time, flows ends, title Windows, of two flows",
)


@pytest.mark.parametrize("line", LINES)
def test_a_figure_is_its_line(line: str) -> None:
    figure = figures.parse(line)
    assert figures.parse(figure.line) == figure
    asked = figures.asked(figure)
    assert figures.parse(asked.figure, asked.name) == figure


def test_clauses_give_what_they_say() -> None:
    assert figures.parse("goodput by buffer, lines congestion, facets loss and rtt, points all") == FigureSpec(
        "metric",
        what="aggregate goodput",
        by=("buffer",),
        lines=("congestion",),
        facets=("loss", "rtt"),
        points="all",
    )
    cut = figures.parse("cwnd of cross over time, run 12, flows all, from 1.5s, to 40s")
    assert (cut.kind, cut.what, cut.of, cut.run, cut.flows) == ("time", "cwnd", "cross", 12, "all")
    assert (cut.from_ns, cut.to_ns) == (1.5 * NS_PER_SECOND, 40 * NS_PER_SECOND)
    bars = figures.parse("completion time by rtt, relative to reno of congestion, where pairs=4")
    assert (bars.relative_to, bars.relative_of, bars.where) == ("reno", "congestion", (("pairs", "4"),))


def test_the_keys_of_a_scenario_say_the_same_as_a_line() -> None:
    keys: dict[str, figures.Clause] = {
        "draw": "goodput by buffer",
        "lines": ["congestion", "rtt"],
        "where": {"loss": "0.1%"},
        "bars": True,
    }
    line = "goodput by buffer, lines congestion and rtt, bars, where loss=0.1%"
    assert figures.from_keys(keys) == figures.parse(line)
    assert figures.from_keys({**keys, "bars": False, "name": "mine"}).file == "mine"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("goodput share by buffer", '"goodput share by buffer": unknown metric, write "goodput" or "share"'),
        ("godput by buffer", '"godput by buffer": unknown metric, write "goodput"'),
        ("loss by buffer", '"loss by buffer": unknown metric, write queue loss, link loss or total loss'),
        ("cnwd over time", '"cnwd over time": there is no such series, write "cwnd"'),
        ("cdf of completion tme", '"cdf of completion tme": there are no such samples, write "completion time"'),
        ("goodput by buffer, line cc", '"line cc": unknown clause, write "lines"'),
        ("goodput by buffer, bars, values log", '"values log": bars begin at zero: leave "bars" or "values" out'),
        ("utilisation by buffer and rtt, values log", "has no values: leave it out"),
        ("goodput by buffer, scale lgo", '"scale lgo": there is no such choice, write "log"'),
        ("goodput by buffer, run 2", '"run 2": a figure "aggregate goodput by buffer" has no run: leave it out'),
        ("goodput by buffer, bars, bars", '"bars": there is another "bars" before: write one'),
        ("rtt over time, from 10", '"from 10": write a duration as "10ms"'),
        ("rtt over time, from 10s, to 4s", '"to 4s": is not after "from": write a later time'),
        ("rtt over time, run 0", '"run 0": write the number of a run, like "run 12"'),
        ("goodput of each by x", "of each what?"),
        ("fairness of cross over time", 'is of the run: write "fairness"'),
        ("goodput", "is no figure, write"),
        ("goodput by buffer, where buffer", 'write a parameter and its value, like "where buffer=1BDP"'),
        ("goodput by buffer, harm against reno", 'a figure "aggregate goodput by buffer" has no harm against'),
        ("goodput by a and b, harm against", "write the value that others are held against"),
        ("marks by a and b, harm against reno", "marks is neither better nor worse: write another metric"),
        ("goodput by a and b and c", 'write one parameter after "by", or two for a heat map'),
    ],
)
def test_what_is_wrong_is_named(line: str, error: str) -> None:
    with pytest.raises(ValueError) as caught:
        figures.parse(line)
    assert error in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("goodput by bufer", '"by bufer": there is no such parameter, write "buffer"'),
        ("goodput by buffer, lines cc", '"lines cc": there is no such parameter'),
        ("goodput by buffer, where buffer=3BDP", '"where buffer=3BDP": no run has this value, write "2BDP"'),
        (
            "goodput by buffer and congestion, harm against ren",
            '"harm against ren": no run has this value, write "reno"',
        ),
        ("goodput by buffer, relative to ren", '"relative to ren": no run has this value, write "reno"'),
    ],
)
def test_parameters_and_their_values_must_be_there(line: str, error: str) -> None:
    known = {"buffer": ["1BDP", "2BDP"], "congestion": ["reno", "cubic"]}
    figures.check(figures.parse("goodput of each step by buffer, lines step, relative to reno"), known)
    with pytest.raises(ValueError) as caught:
        figures.check(figures.parse(line), known)
    assert error in str(caught.value)


def test_series_and_samples_are_of_tables_that_runs_leave() -> None:
    every: list[Series | Samples] = [*SERIES.values(), *SAMPLES.values()]
    for each in every:
        columns = COLUMNS[each.table].columns
        assert not each.column or each.column in columns, each.name
