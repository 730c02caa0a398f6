"""`ewan results report` and `ewan exp list` as a user calls them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ewan.analysis.cli import report_command, runs_command
from ewan.analysis.tests import synthetic
from ewan.labs.context import Context


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "results"


def report(*arguments: str) -> Result:
    return CliRunner().invoke(report_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


def runs(*arguments: str) -> Result:
    return CliRunner().invoke(runs_command, arguments, catch_exceptions=False, obj=Context.of(os.environ))


def make(results: Path, name: str = "20260102T030405Z-synthetic") -> Path:
    return synthetic.experiment(results / name, [{"congestion": "cubic"}], seeds=(1,), pairs=2, seconds=3)


def test_report_names_the_page_it_made(results: Path) -> None:
    make(results)
    answer = report("results/20260102T030405Z-synthetic", "--flent", "out")
    assert answer.exit_code == 0
    assert answer.output.splitlines()[0] == "results/20260102T030405Z-synthetic/report.html (open it in a browser)"
    assert (results / "20260102T030405Z-synthetic/report.html").exists()
    assert len(list(Path("out").glob("*.flent.gz"))) == 1


def test_report_names_the_pdf_files_that_it_wrote(results: Path) -> None:
    figures = make(results) / "figures"
    figures.mkdir(exist_ok=True)
    (figures / "older.pdf").touch()
    page, *others = report("--figure", "rtt over time", "--pdf").output.splitlines()
    assert page.endswith("report.html (open it in a browser)")
    assert {results.parent / path for path in others} == set(figures.glob("*.pdf")) - {figures / "older.pdf"}
    assert "results/20260102T030405Z-synthetic/figures/rtt-over-time.pdf" in others


def end(directory: Path, ended: str | None, started: str = "2026-01-02T03:04:05+00:00") -> None:
    """Sets the times when an experiment began and ended."""
    path = directory / "experiment.json"
    document = {**json.loads(path.read_text()), "started": started, "ended": ended}
    path.write_text(json.dumps({**document, "status": "complete" if ended else "running"}))


def test_report_takes_the_experiment_that_ended_last(results: Path) -> None:
    """HSTTS makes all directories before its first run, and they sort by the applications' names."""
    first, last, still = (make(results, f"20260102T030405Z-hstts-{app}") for app in ("bu", "tu", "wm"))
    end(last, "2026-01-02T03:10:00+00:00")
    end(first, "2026-01-02T03:10:01+00:00")
    end(still, None, "2026-01-02T03:11:00+00:00")
    broken = results / "20270102T030406Z-broken"
    broken.mkdir()
    (broken / "experiment.json").write_text("{")
    assert report().exit_code == 0
    assert [path.parent for path in results.glob("*/report.html")] == [first]


def test_report_takes_the_later_of_two_that_ended_in_one_second(results: Path) -> None:
    first, last = (make(results, f"20260102T030405Z-hstts-{app}") for app in ("tu", "bu"))
    for number, directory in enumerate((first, last)):
        end(directory, "2026-01-02T03:10:00+00:00")
        os.utime(directory / "experiment.json", ns=(0, number))
    assert report().exit_code == 0
    assert [path.parent for path in results.glob("*/report.html")] == [last]


def test_report_takes_what_began_last_where_nothing_has_ended(results: Path) -> None:
    later, sooner = (make(results, f"20260102T030405Z-{name}") for name in ("a", "b"))
    end(later, None, "2026-01-02T03:04:07+00:00")
    end(sooner, None, "2026-01-02T03:04:06+00:00")
    assert report().exit_code == 0
    assert [path.parent for path in results.glob("*/report.html")] == [later]


def test_figures_once_asked_for_stay_in_the_report(results: Path) -> None:
    page, asked = make(results) / "report.html", ("goodput-over-time", "rtt-over-time", "cdf-of-rtt")
    assert report("--figure", "rtt over time", "--figure", "goodput over time").exit_code == 0
    assert report("--figure", "cdf of rtt").exit_code == 0
    assert all(f'<figure id="{name}">' in page.read_text() for name in asked)
    assert report().exit_code == 0
    assert all(f'<figure id="{name}">' in page.read_text() for name in asked)
    (results / "20260102T030405Z-synthetic/figures/asked.json").unlink()
    assert report().exit_code == 0
    assert 'id="cdf-of-rtt"' not in page.read_text()


def test_report_says_what_is_wrong_with_the_only_experiment(results: Path) -> None:
    place = results / "20260102T030405Z-broken"
    place.mkdir(parents=True)
    (place / "experiment.json").write_text("{")
    answer = report()
    assert answer.exit_code == 2
    assert f"{place.name}/experiment.json: is damaged" in answer.stderr


def test_report_of_something_else_is_one_line_and_status_2(results: Path) -> None:
    (results / "20260102T030405Z-dumbbell").mkdir(parents=True)
    for arguments in (["results/20260102T030405Z-dumbbell"], ["nowhere"], []):
        answer = report(*arguments)
        assert answer.exit_code == 2
        assert answer.stderr.count("\n") == 1
        assert answer.stderr.startswith("ewan: ")


def test_runs_tells_when_what_how_far_and_with_what_result(results: Path) -> None:
    report(str(make(results)))
    (results / "20260102T030405Z-dumbbell").mkdir()
    broken = results / "20260102T030406Z-broken"
    broken.mkdir()
    (broken / "experiment.json").write_text("{")
    answer = runs()
    assert answer.exit_code == 0
    line = next(line for line in answer.output.splitlines() if "-synthetic" in line)
    for words in ("2026-01-02 03:04", "virtual", "1/1", "complete", "mean completion time"):
        assert words in line
    assert "not readable" in next(line for line in answer.output.splitlines() if "-broken" in line)
    assert "1 other directory" in answer.stderr


def test_runs_as_json(results: Path) -> None:
    make(results)
    (row,) = json.loads(runs("--json").stdout)
    assert (row["scenario"], row["runs"], row["status"], row["verified"]) == ("synthetic", "1/1", "complete", "–")


def test_runs_without_results(results: Path) -> None:
    answer = runs()
    assert answer.exit_code == 0
    assert "no experiments in results/" in answer.stderr


def test_runs_says_how_many_were_disturbed(results: Path) -> None:
    place = make(results, "20260102T030405Z-live")
    make(results, "20260102T030406Z-virtual")
    synthetic.watched(place, 1, 2)
    assert "complete, 1 disturbed" in runs().output
    rows = json.loads(runs("--json").output)
    assert [(row["status"], row["disturbed"]) for row in rows] == [("complete", "1"), ("complete", "")]


def called(directory: Path, started: str, **labels: object) -> None:
    path = directory / "experiment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "started": started, **labels}))


@pytest.fixture
def tagged(results: Path) -> Path:
    """Three experiments: of two with a tag one began today."""
    today = datetime.now(UTC).isoformat(timespec="seconds")
    called(make(results, "20260102T030405Z-a"), today, tags=["satellite", "draft"], name="Figure [3]", note="seeds")
    called(make(results, "20260102T030405Z-b"), "2026-01-02T03:04:05+00:00", tags=["satellite"])
    make(results, "20260102T030405Z-c")
    return results


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], "abc"),
        (["--tag", "satellite"], "ab"),
        (["--tag", "satellite", "--tag", "draft"], "a"),
        (["--since", "2h"], "a"),
        (["--since", "2026-01-01"], "abc"),
        (["--scenario", "other"], ""),
        (["--scenario", "synthetic", "--status", "complete"], "abc"),
        (["--status", "refused"], ""),
    ],
)
def test_runs_lists_what_is_asked_for(tagged: Path, words: list[str], found: str) -> None:
    rows = json.loads(runs(*words, "--json").stdout)
    assert "".join(row["directory"][-1] for row in rows) == found


def test_runs_shows_names_and_tags_where_there_are_some(tagged: Path) -> None:
    answer = runs()
    assert all(words in answer.stdout for words in ("Figure [3]", "satellite draft", "name", "tags"))
    assert "no experiment has the tag draf: there are: draft, satellite" in runs("--tag", "draf").stderr


def test_a_moment_that_is_none_is_refused(tagged: Path) -> None:
    for text in ("2q", "yesterday", "999999w"):
        answer = runs("--since", text)
        assert answer.exit_code == 2 and answer.stderr.count("\n") == 1


def test_the_report_says_what_the_experiment_is_called(tagged: Path) -> None:
    report(str(tagged / "20260102T030405Z-a"))
    page = (tagged / "20260102T030405Z-a/report.html").read_text()
    assert all(words in page for words in ("Figure [3]", "satellite, draft", "seeds"))
