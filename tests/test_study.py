"""A researcher's study, from its scenario to figures that stand in a paper as they are, and to the notebook in docs/.

The ready scenario `satellite-study` at its quick scale, in the virtual clock: once for all tests here.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ewan
from ewan.analysis.api import Results
from ewan.labs.record import figures
from tests.conftest import ROOT
from tests.experiments import only

pytestmark = pytest.mark.virtual

RATE_BPS = 50e6
RTT_NS = 560e6
BUFFERS_NS = {"0.5BDP": 0.5 * RTT_NS, "2BDP": 2 * RTT_NS}


def command(place: Path, *arguments: str) -> str:
    words = [sys.executable, str(ROOT / "ewan" / "cli.py"), *arguments]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("study")
    command(place, "run", "satellite-study", "--size", "quick", "--runtime", "virtual")
    return place


@pytest.fixture(scope="module")
def study(place: Path) -> Results:
    return ewan.load(only(place))


def test_measures_stay_within_what_the_link_can_do(study: Results) -> None:
    goodput = study.metric("steady goodput").frame
    assert goodput.height == 16 and 0.5 * RATE_BPS < goodput["value (bit/s)"].max() <= RATE_BPS  # type: ignore[operator]
    waits = study.metric("queueing delay p99").frame
    for buffer, delay_ns in waits.select("buffer", "value (ns)").iter_rows():
        assert 0 <= delay_ns <= 1.02 * BUFFERS_NS[buffer]
    for (rtt_ns,) in study.metric("rtt p50").frame.select("value (ns)").iter_rows():
        assert rtt_ns >= RTT_NS
    for (share,) in study.metric("share of each step").frame.select("value (share)").iter_rows():
        assert 0 <= share <= 1


def test_the_report_has_the_six_figures_as_pages_of_a_paper(place: Path, study: Results) -> None:
    command(place, "report", str(study.directory), "--pdf", "--style", "paper-1col")
    specs = [figures.parse(each.figure) for each in study.document.figures]
    assert len(specs) == 6
    for spec in specs:
        page = (study.directory / f"figures/{spec.file}.pdf").read_bytes()
        assert page.startswith(b"%PDF-") and b"/FontFile2" in page, f"{spec.line}: its fonts are in it"
        assert (study.directory / f"figures/{spec.file}.csv").read_text().count("\n") > 8, spec.line


def test_the_notebook_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    cells = json.loads((ROOT / "docs/tutorials/results.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for text in code:
        *before, last = ast.parse(text).body
        exec(compile(ast.Module(before, []), "notebook", "exec"), names)
        assert isinstance(last, ast.Expr), "a cell ends with what it shows"
        shown = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
        assert any(hasattr(shown, f"_repr_{kind}_") for kind in ("html", "svg")), text
        if hasattr(shown, "height"):
            assert shown.height > 0, text
