"""The page: it is whole, needs no other file, and names what is missing."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ewan.analysis import circumstances, load, metric_tables, report, summary
from ewan.analysis.tests import synthetic
from ewan.labs.base.codec import replace
from ewan.labs.base.units.shown import written
from ewan.labs.record import Certificate, Emulating
from ewan.labs.record.machine_load import MachineRecord

pytestmark = pytest.mark.slow

VARIANTS = [{"congestion": name, "reverse": 1} for name in ("reno", "cubic", "bic")]
TOLD: dict[str, Any] = {
    "normalise": {"by": "congestion", "to": "reno"},
    "about": "Words <about> it.",
    "beside": [
        {
            "source": "HSTTS",
            "when": {"congestion": "bic"},
            "metric": "mean completion time",
            "value": 21e9,
            "unit": "ns",
        }
    ],
}


class Reader(HTMLParser):
    """A parser of a page: its references, its ids, and whether its elements are closed in order."""

    VOID = ("meta", "br", "link", "img", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self._note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def made(directory: Path, **options: Any) -> str:
    experiment = synthetic.experiment(directory, VARIANTS, **{"pairs": 2, "seconds": 4, "told": TOLD, **options})
    (experiment / "scenario.yaml").write_text("name: synthetic\n")
    return report.write(experiment).read_text()


def change(directory: Path, **changes: Any) -> None:
    path = directory / "experiment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_page_stands_alone(tmp_path: Path) -> None:
    page = Reader(made(tmp_path))
    assert "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link.startswith("data:") or link.removeprefix("#") in page.ids, link[:60]


def test_figures_are_in_it_and_beside_it(tmp_path: Path) -> None:
    text = made(tmp_path)
    names = sorted(path.stem for path in (tmp_path / "figures").glob("*.svg"))
    assert names == sorted(path.stem for path in (tmp_path / "figures").glob("*.csv"))
    assert {"normalised", "goodput-over-time", "cwnd", "queue-over-time"} <= set(names)
    for name in names:
        assert f'<figure id="{name}">' in text
    (held,) = re.findall(r'href="data:text/csv;base64,([^"]*)" download="normalised.csv"', text)
    assert base64.b64decode(held) == (tmp_path / "figures/normalised.csv").read_bytes()


def test_it_says_what_was_run_on_what_and_how_verified(tmp_path: Path) -> None:
    text = made(tmp_path)
    for words in (
        "Synthetic bulk transfers on a dumbbell",
        "Words &lt;about&gt; it.",
        "9: 3 choices of parameters, seeds 1, 2, 3",
        "6.12.0-synthetic",
        "a synthetic CPU × 2",
        "ewan-node 0.1.0",
        "plan 0123456789ab, runs 1–9; 2 ok, 1 not decidable, 1 not measured",
        "Ratios to reno",
        "95 % confidence intervals",
        "name: synthetic",
    ):
        assert words in text, words
    assert 'class="warning"' not in text
    assert ">21 s<" in text  # the paper's number


def test_ratios_are_in_tables_as_narrow_as_the_others(tmp_path: Path) -> None:
    made(tmp_path)
    found, experiment = summary.found(tmp_path), load.experiment(tmp_path)
    ratios = report.ratios(experiment, found)
    assert ratios is not None
    titles = [table.title for table in ratios.tables]
    assert titles == [table.title for table in report.tables(experiment, found)]
    assert {"Completion times of transfers", "Goodput and fairness"} <= set(titles)
    for table in ratios.tables:
        assert 0 < len(table.columns) <= metric_tables.MOST_FIRST
        assert [len(cells) for _, _, cells in table.rows] == 3 * [len(table.columns)]
    reno = ratios.tables[0].rows[0]
    assert reno[0] == ["reno"] and set(reno[2]) == {"1"}, "divided by itself"


def test_one_seed_says_so(tmp_path: Path) -> None:
    assert "there are no confidence intervals" in made(tmp_path, seeds=(1,))


def test_an_incomplete_experiment_says_so_and_shows_what_there_is(tmp_path: Path) -> None:
    made(tmp_path)
    runs = json.loads((tmp_path / "experiment.json").read_text())["runs"]
    runs[1] |= {"status": "failed", "error": "flow 3: connection refused"}
    for run in runs[6:]:
        run |= {"status": "waiting", "directory": "runs/999"}
    change(tmp_path, runs=runs, status="incomplete", ended=None)
    (tmp_path / "summary.json").unlink()
    text = report.write(tmp_path).read_text()
    Reader(text)
    assert "This experiment is incomplete" in text
    assert "4 of 9 runs are not complete" in text
    assert "flow 3: connection refused" in text


def test_runs_whose_logs_were_not_handled_are_named(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "runs/001/flows.parquet").unlink()
    (tmp_path / "summary.json").unlink()
    synthetic.vouch(tmp_path)
    text = report.write(tmp_path).read_text()
    assert "Complete runs without tables yet, and not in the results: 1" in text
    assert f"ewan exp resume {tmp_path}" in text


def test_an_experiment_that_never_ran_has_a_page(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS, seeds=(), told={"status": "refused", "unverified": True})
    for path in (tmp_path / "certificates").iterdir():
        path.unlink()
    text = report.write(tmp_path).read_text()
    Reader(text)
    assert "This experiment was refused" in text
    assert "--unverified was given" in text
    assert "There is no certificate" in text


def test_what_is_no_experiment_has_none(tmp_path: Path) -> None:
    with pytest.raises(load.LoadError):
        report.write(tmp_path)


def test_the_page_puts_its_own_colours_into_figures() -> None:
    svg = '<?xml version="1.0"?><svg><metadata>x</metadata><g id="a" style="fill: #0072b2; stroke: #1b1b1b"/></svg>'
    text = report.inline(svg, "f1")
    assert text == '<svg><g id="f1-a" style="fill: var(--series-1); stroke: var(--ink)"/></svg>'


@pytest.mark.parametrize(
    ("runtime", "nodes"),
    [("netns", "network namespaces"), ("auto", "network namespaces"), ("containerlab", "containers")],
)
def test_a_live_experiment_says_what_its_nodes_were(tmp_path: Path, runtime: str, nodes: str) -> None:
    synthetic.experiment(tmp_path / "x", [{}], seeds=(1,), seconds=2, told={"clock": "live", "runtime": runtime})
    known = circumstances.facts(load.experiment(tmp_path / "x"))
    assert known["clock"] == f"live: {nodes} of this machine's kernel, in real time"


def test_it_tells_which_runs_were_disturbed_and_how_much_of_the_load_that_touched(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS, seeds=(1,), pairs=2, seconds=6, told=TOLD)
    synthetic.watched(tmp_path, 1)
    synthetic.watched(tmp_path, 2, 2)
    page = report.write(tmp_path).read_text()
    Reader(page)
    share = load_share(tmp_path)
    text = " ".join(page.split())
    assert "Links left their tolerance in 1 of 2 runs (2), in 1 of 12 s; " in text
    assert f"1 of 6 s, {share} of the load</td>" in text and ">no</td>" in text
    assert "300 of 10,000 packets left core forward later than 500 µs, up to 4 ms" in text
    assert text.count('<td class="n">1 †</td>') > 0, "the point of run 2, whose space does not break"
    assert "† Links left their tolerance for a time in a run of this point." in text


def load_share(directory: Path) -> str:
    found = json.loads((directory / "summary.json").read_text())["runs"][1]["disturbed"]
    assert 0.05 < found["share"] < 0.4 and found["seconds"] == [2]
    return str(written(found["share"], "share", 2))


def test_of_an_experiment_that_nobody_watched_it_says_nothing(tmp_path: Path) -> None:
    page = made(tmp_path)
    assert "tolerance" not in page.partition('<section id="runs">')[2].partition("</section>")[0]
    assert "While the runs went" not in page and "†" not in page


def test_changes_whose_state_did_not_come_are_named(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, VARIANTS, seeds=(1,), pairs=2, seconds=2, told=TOLD)
    event = {"at_ns": 0, "link": "core", "direction": "forward", "change": {}, "error": None, "down": True}
    waits = event | {"after": [1], "when": "mode DRAIN of bulk"}
    for number, applied_ns in enumerate((5, None, None)[: len(VARIANTS)], 1):
        made = {"format": "ewan-events/1", "events": [waits | {"applied_ns": applied_ns}]}
        (tmp_path / f"runs/{number:03}/events.json").write_text(json.dumps(made))
    synthetic.vouch(tmp_path)
    (told,) = report.unmade(load.experiment(tmp_path))
    assert told.endswith("did not come to the state for which a change waits: core down when mode DRAIN of bulk.")
    assert told.startswith(f"Of {len(VARIANTS)} complete runs, {len(VARIANTS) - 1} did not")


def test_a_report_names_the_machines_that_emulated_and_not_the_one_that_asked() -> None:
    here, there = synthetic.HOST, replace(synthetic.HOST, kernel="6.1.0", cpu_model="another CPU")
    alone = Certificate("0" * 64, "x", "", here, {}, (), {}, {}, 0)
    over = replace(alone, machines={"two": Emulating(there, (1,), (0, 2), MachineRecord())})
    assert circumstances.hosts(here, [alone]) == circumstances.host(here)
    said = circumstances.hosts(here, [alone, over])
    assert list(said) == ["machine two", "started from, where nothing was emulated"]
    assert said["machine two"].startswith("6.1.0; ") and said["machine two"].endswith("links on CPU 1; nodes on 0, 2")
    assert "6.1.0" not in said["started from, where nothing was emulated"]


def test_a_summary_and_the_figures_come_first(tmp_path: Path) -> None:
    told = {**TOLD, "metrics": ["aggregate goodput"], "figures": [{"figure": "cwnd over time"}]}
    page = made(tmp_path, told=told)
    ids = [each for each in Reader(page).ids if each in ("summary", "figures", "results", "verified", "run", "runs")]
    assert ids == ["summary", "figures", "results", "verified", "run", "runs"]
    first = page[page.index('id="summary"') : page.index('id="figures"')]
    assert "9 of 9 runs" in first and "<dt>aggregate goodput</dt>" in first and "bic)" in first and "95 %" in first
    titles = re.findall(r"<h3>(\d+ [^<]*)</h3>", page)
    assert titles[0] == "1 Cwnd over time" and sum("Cwnd over time" in each for each in titles) == 1


def test_groups_with_fewer_seeds_are_named_in_captions(tmp_path: Path) -> None:
    experiment = synthetic.experiment(tmp_path, VARIANTS, pairs=2, seconds=4, told=TOLD)
    document = json.loads((experiment / "experiment.json").read_text())
    lost = next(run for run in document["runs"] if run["parameters"]["congestion"] == "bic")
    lost["status"] = "failed"
    change(experiment, runs=document["runs"])
    page = report.write(experiment).read_text()
    assert len(re.findall(r"n = 3 \(2 for bic\)", page)) >= 2 and "confidence intervals over seeds" in page
    assert not re.search(r"(?<!95 % )confidence intervals (of the mean )?over seeds", page)


def test_rows_stand_in_the_order_of_their_values(tmp_path: Path) -> None:
    points = [{"buffer": value, "reverse": 1} for value in ("0.12BDP", "1BDP", "0.06BDP")]
    experiment = load.experiment(synthetic.experiment(tmp_path, points, pairs=1, seconds=2, seeds=(1,)))
    table = next(iter(metric_tables.tables(experiment, summary.found(tmp_path))))
    assert [row[0] for row in table.points] == ["0.06BDP", "0.12BDP", "1BDP"]
