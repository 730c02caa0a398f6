"""Tables for papers and for other programs: numbers with their digits, units in the heads, nothing that LaTeX reads."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from ewan.analysis import latex, load, metric_tables, summary
from ewan.analysis.cli import export_command
from ewan.analysis.metric_tables import MetricColumn, PointTable
from ewan.analysis.tests import synthetic
from ewan.labs.context import Context
from ewan.labs.record.summary import Mean
from tests import summaries

TITLE = r"50% & {more} #1_a^b~c\d"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two points with three seeds each; a title with characters that LaTeX reads."""
    points = [{"congestion": "reno", "rtt": "20ms"}, {"congestion": "reno_2", "rtt": "40.5ms"}]
    directory = tmp_path_factory.mktemp("results") / "x"
    synthetic.experiment(directory, points, seeds=(1, 2, 3), pairs=2, seconds=3, told={"title": TITLE})
    return directory


def export(*arguments: str) -> Result:
    return CliRunner().invoke(export_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


def value(mean: float, half: float | None) -> Mean:
    ends = {} if half is None else {"low": mean - half, "high": mean + half}
    return summaries.mean({"mean": mean, **ends})


def test_a_number_has_the_digits_of_its_uncertainty() -> None:
    values = [value(7.6072e9, 0.5581e9), value(-12.3456e9, 1.34e9), value(5e9, None), None]
    column = latex.measured(MetricColumn("mean completion time", "s", 1e9, values))
    assert column.cells == ["7.61(56)", "-12.3(13)", "5", "{--}"]
    assert column.format == "S[table-format=-2.2(2)]"
    assert column.head == r"{\shortstack{mean completion \\ time (\si{\second})}}"


def test_what_is_more_than_the_links_carry_is_marked() -> None:
    values = [value(54.4e6, 0.7e6), value(47e6, 1e6)]
    column = latex.measured(MetricColumn("mean goodput", "Mbit/s", 1e6, values, [True, False]))
    assert column.cells == [r"54.40(70) {\textsuperscript{\textdaggerdbl}}", "47.0(10)"]
    assert "table-space-text-post=" in column.format


def test_amounts_of_one_unit_are_numbers_below_it_and_others_are_words() -> None:
    points = [["20ms", "1BDP", "5"], ["40.5ms", "a_b", "10"]]
    columns = latex.parameters(PointTable("x", ["rtt", "buffer", "n"], points, [3, 12], []))
    assert [column.cells for column in columns] == [["20", "40.5"], ["1BDP", r"a\_b"], ["5", "10"], ["3", "12"]]
    assert [column.format for column in columns] == [
        "S[table-format=2.1]",
        "l",
        "S[table-format=2.0]",
        "S[table-format=2.0]",
    ]
    assert columns[0].head == r"{rtt (\si{\milli\second})}"


def test_what_latex_reads_is_escaped() -> None:
    assert latex.escaped("ü日50% & {a} #1_b^c~d\\e $x$\nnext") == (
        r"ü[U+65E5]50\% \& \{a\} \#1\_b\textasciicircum{}c\textasciitilde{}d\textbackslash{}e \$x\$ next"
    )


def test_every_metric_of_the_report_is_in_a_table(place: Path) -> None:
    experiment, found = load.experiment(place), summary.found(place)
    files = latex.write(experiment, found)
    shown = files.pop("tables.tex")
    assert all(f"\\input{{{name.removesuffix('.tex')}}}" in shown for name in files)
    columns = [column.name for table in metric_tables.tables(experiment, found) for column in table.columns]
    heads = [text.splitlines()[6].count(" & ") + 1 for text in files.values()]
    assert sum(heads) - 3 * len(files) == len(columns) > 10, "beside congestion, rtt and seeds"
    for text in files.values():
        assert text.count(r"\\" + "\n") == 1 + len(found.points) and r"\toprule" in text
        assert max(line.count(" & ") for line in text.splitlines()) <= latex.MOST_COLUMNS + 2
    assert files == {name: text for name, text in latex.write(experiment, found).items() if name != "tables.tex"}


def test_points_and_runs_as_csv_are_those_of_the_summary(place: Path, tmp_path: Path) -> None:
    answer = export(str(place), "--csv", str(tmp_path))
    assert answer.exit_code == 0 and f"CSV: 2 files in {tmp_path}" in answer.stdout
    found = summary.found(place)
    with (tmp_path / "points.csv").open() as file:
        points = list(csv.DictReader(file))
    assert [row["rtt"] for row in points] == ["20ms", "40.5ms"]
    first = found.points[0].metrics
    assert float(points[0]["mean completion time (s)"]) == (first["mean completion time"].mean or 0) / 1e9
    assert float(points[0]["aggregate goodput, low (bit/s)"]) == first["aggregate goodput"].low
    assert float(points[0]["utilisation"]) == first["utilisation"].mean
    with (tmp_path / "runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert [(row["run"], row["seed"], row["status"]) for row in runs] == [
        (str(run.number), str(run.seed), run.status) for run in found.runs
    ]
    times = [(run.metrics["mean completion time"].value or 0) / 1e9 for run in found.runs]
    assert [float(row["mean completion time (s)"]) for row in runs] == times


def test_a_reference_is_small_and_leads_back_to_its_archive(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "small.csv"
    answer = export(str(place), "--reference", str(file))
    assert answer.exit_code == 2 and "has 0 archives" in answer.stderr and not file.exists()
    shutil.copytree(place, tmp_path / "run")
    (tmp_path / "run/all.tar.zst").write_bytes(b"")
    assert export(str(tmp_path / "run"), "--reference", str(file)).exit_code == 0
    lines = file.read_text().splitlines()
    assert f"# archive: all.tar.zst {hashlib.sha256().hexdigest()}" in lines
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    found = summary.found(place)
    named = load.experiment(place).document.metrics
    there = [(point, metric) for point in found.points for metric in named if metric in point.metrics]
    assert [(row["rtt"], row["metric"]) for row in rows] == [(at.parameters["rtt"], name) for at, name in there]
    times = [(at.metrics[name].mean or 0) / 1e9 for at, name in there if name == "mean completion time"]
    assert [float(row["mean"]) for row in rows if row["unit"] == "s"][: len(times)] == pytest.approx(times, rel=1e-5)


def test_parquet_has_all_runs_with_their_parameters(place: Path, tmp_path: Path) -> None:
    assert export(str(place), "--parquet", str(tmp_path), "--flent", str(tmp_path / "flent")).exit_code == 0
    flows = pl.read_parquet(tmp_path / "flows.parquet")
    assert sorted(set(flows["run"])) == [1, 2, 3, 4, 5, 6] and set(flows["parameter_rtt"]) == {"20ms", "40.5ms"}
    assert len(list((tmp_path / "flent").glob("*.flent.gz"))) == 6


def test_nothing_asked_for_and_places_that_cannot_be_are_one_line(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in ([str(place)], [str(place), "--csv", str(tmp_path / "file")], [str(tmp_path), "--csv", "x"]):
        answer = export(*words)
        assert answer.exit_code == 2 and answer.stderr.count("\n") == 1 and answer.stderr.startswith("ewan: ")
