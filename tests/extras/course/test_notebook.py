"""The notebook of a lab, cell by cell, as Jupyter executes it: commands, figures, answers, the check."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

import ewan
from ewan.analysis.api import Results
from ewan.analysis.one_run import SingleRun
from ewan.extras.course import folder, reading
from ewan.extras.course.session import CheckTable, Session
from ewan.extras.course.tests.courses import written
from ewan.labs.context import Context

pytestmark = pytest.mark.virtual


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    lab = reading.read(written(tmp_path / "labs"))
    own = folder.start(lab, "4711", tmp_path / "pipe")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as Jupyter does
    session = Session(own, Context.of(os.environ), SingleRun, Results, lab.folder.parent)
    monkeypatch.setattr(ewan, "course", lambda: session)
    cells = json.loads((own / "pipe.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    shown: list[object] = []
    for text in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"):
        text = text.replace("lab.answer('pipe', '')", "lab.answer('pipe', '1kB')")
        *before, last = ast.parse(text).body
        exec(compile(ast.Module(before, []), "notebook", "exec"), names)
        assert isinstance(last, ast.Expr), "a cell ends with what it shows"
        shown.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))
    said = capfd.readouterr().out
    assert "complete  report: results/" in said and "\x1b" not in said, "lines of a log, without colours"
    assert [each for each in shown if hasattr(each, "_repr_svg_")], "the figure"
    (checked,) = (each for each in shown if isinstance(each, CheckTable))
    assert [each.state for each in checked.verdicts] == ["wrong", *["missing"] * 5]
    assert "missing" not in repr(checked) and "no answer yet" in checked._repr_html_()
    assert session.results().metric("utilisation").frame.height == 1
    assert (own / "checks.jsonl").read_text().count("\n") == 1


def test_in_its_own_folder_the_session_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = reading.find("bufferbloat")
    monkeypatch.chdir(folder.start(lab, "4711", tmp_path / "bufferbloat"))
    assert ewan.course().parameters == folder.load(Path()).drawing.texts
    assert repr(ewan.course()).startswith("Bufferbloat, student 4711: rate ")
