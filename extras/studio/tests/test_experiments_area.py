"""The page's requests about experiments: names from strangers, words of a person, figures, exports; `--view` changes
nothing.

The experiments are made up (analysis/tests/synthetic.py)."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from starlette.testclient import TestClient

from ewan.analysis import experiment_list, report, summary
from ewan.analysis.tests import synthetic
from ewan.extras.studio.server import results
from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.files import RefusedError
from ewan.extras.studio.server.guard import Access, names_of
from ewan.extras.studio.server.reader import Reader
from ewan.extras.studio.server.results import Experiments
from ewan.extras.studio.tests.conftest import DescribedClient
from ewan.labs.base.product import ROOT
from ewan.labs.context import Context

pytestmark = pytest.mark.slow

PORT = 8765
DISTURBED = "20260104T030405Z-third"
NAME, OTHER, BROKEN = "20260102T030405Z-first", "20260103T030405Z-second", "20260101T000000Z-broken"
OUTSIDE = ["../secret", "..%2Fsecret", "%2e%2e%2fsecret", "..", "away", "nothing", "a%00b", "<b>x</b>"]


def client_of(here: Path, view: bool = False) -> TestClient:
    access = Access(names_of("127.0.0.1", PORT), PORT, view)
    (here / "page").mkdir(exist_ok=True)
    headers = {"authorization": f"Bearer {access.token}"}
    context = Context.of({"EWAN_STATE": str(here / "state"), "PATH": os.environ["PATH"]})
    return DescribedClient(
        make(context, here, here / "page", access), base_url=f"http://127.0.0.1:{PORT}", headers=headers
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("here")
    for name, points in ((NAME, ("cubic", "reno")), (OTHER, ("cubic", "bic"))):
        place = synthetic.experiment(
            here / "results" / name, [{"congestion": each} for each in points], seeds=(1, 2), pairs=2, seconds=3
        )
        summary.analyse(place)
    report.write(here / "results" / NAME)
    synthetic.experiment(here / "secret", [{"congestion": "cubic"}], seeds=(1,), pairs=2, seconds=3)
    (here / "results/away").symlink_to(here / "secret")
    broken = here / "results" / BROKEN
    broken.mkdir()
    (broken / "experiment.json").write_text("{")
    return here


@pytest.fixture(scope="module")
def client(here: Path) -> Iterator[TestClient]:
    with client_of(here) as client:
        yield client


def test_one_that_cannot_be_read_says_so_and_the_rest_are_there(client: TestClient) -> None:
    found = client.get("/api/experiments").json()
    assert [Path(row["directory"]).name for row in found] == [OTHER, NAME, BROKEN], "a link out of results/ is none"
    assert [row["status"] for row in found] == ["complete", "complete", "not readable"]
    answer = client.get(f"/api/experiments/{BROKEN}")
    assert answer.status_code == 400 and "is damaged" in answer.json()["error"] and "\n" not in answer.json()["error"]


def test_threads_that_ask_at_once_get_the_same_list(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments, state = Experiments(here, {}), results._state
    begun, ended = threading.Event(), threading.Event()
    asked: list[Path] = []

    def asked_meanwhile(path: Path) -> object:
        asked.append(path)
        if len(asked) == len(results.STATE) + 1:  # the other thread asks, and gets on when this one has its list
            others.append(other.submit(experiments.every))
            assert begun.wait(10)
        elif len(asked) == len(results.STATE) + 2:
            begun.set()
            assert ended.wait(10)
        return state(path)

    monkeypatch.setattr(results, "_state", asked_meanwhile)
    others: list[Future[list[experiment_list.ExperimentRow]]] = []
    with ThreadPoolExecutor(1) as other:
        try:
            found = experiments.every()
        finally:
            ended.set()
    assert len(found) == 3 and others[0].result() == found


def test_an_experiment_tells_what_was_asked_and_found(client: TestClient) -> None:
    found = client.get(f"/api/experiments/{NAME}").json()
    assert (found["title"], found["so_far"]) == ("Synthetic bulk transfers on a dumbbell", "4 of 4 runs complete")
    assert [run["point"] for run in found["runs"]] == [["cubic"], ["cubic"], ["reno"], ["reno"]]
    (known,) = found["certificates"]
    assert known["runs"] == [1, 2, 3, 4] and known["id"] == "0123456789ab"
    told = client.get(f"/api/experiments/{NAME}/certificates/{known['id']}").json()
    assert told["columns"][:3] == ["link", "direction", "quantity"] and len(told["rows"][0]) == len(told["columns"])
    assert found["report"] and found["tables"][0]["columns"][:2] == ["congestion", "seeds"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_lead_nowhere_else(client: TestClient, here: Path, name: str) -> None:
    before = (here / "secret/experiment.json").read_bytes()
    for path in (f"/api/experiments/{name}", f"/results/{name}/export/csv", f"/api/compare/{NAME}/{name}"):
        answer = client.get(path)
        assert answer.status_code in (400, 404) and "synthetic" not in answer.text, path
    assert client.post(f"/api/experiments/{name}/labels", json={"tags": ["+x"]}).status_code in (400, 404, 405)
    asked = {"experiment": name, "figure": "goodput over time"}
    assert client.post("/api/figure", json=asked).status_code == 400
    assert client.post("/api/jobs", json={"kind": "report", "name": name}).status_code == 400
    assert (here / "secret/experiment.json").read_bytes() == before


@pytest.mark.parametrize("name", ["..%2Fexperiment", "x.json", "nothing", "%2e%2e", "a%2F..%2Fb"])
def test_certificates_are_those_of_the_experiment(client: TestClient, name: str) -> None:
    assert client.get(f"/api/experiments/{NAME}/certificates/{name}").status_code in (400, 404)


def test_tags_name_and_note_are_changed_as_by_ewan_tag(client: TestClient, here: Path) -> None:
    markup = "<script>alert(1)</script>"
    asked = {"tags": ["+figure", "+draft"], "name": markup, "note": f"of {markup}\nand more"}
    found = client.post(f"/api/experiments/{OTHER}/labels", json=asked).json()
    assert found == {"name": markup, "tags": ["figure", "draft"], "note": f"of {markup}\nand more"}
    changed = client.post(f"/api/experiments/{OTHER}/labels", json={"tags": ["-draft"]}).json()
    assert changed["tags"] == ["figure"] and changed["name"] == markup
    (row,) = [each for each in client.get("/api/experiments").json() if each["name"] == markup]
    assert row["tags"] == ["figure"]
    document = json.loads((here / "results" / OTHER / "experiment.json").read_text())
    assert (document["name"], document["tags"]) == (markup, ["figure"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"tags": ["+a b"]}, "write letters"),
        ({"tags": ["+<b>"]}, "write letters"),
        ({"tags": ["-never"]}, "does not have it"),
        ({"tags": ["draft"]}, "write +draft"),
        ({"note": "x" * 5000}, "at most 4000"),
        ({"note": "x" * 50_000}, "note"),
        ({"name": "x" * 100}, "at most 80"),
        ({"name": "a\u0000b"}, "printable"),
        ({"title": "x"}, "title"),
    ],
)
def test_words_that_cannot_be_taken_are_refused_in_a_line(
    client: TestClient, here: Path, asked: dict[str, Any], words: str
) -> None:
    before = (here / "results" / NAME / "experiment.json").read_bytes()
    answer = client.post(f"/api/experiments/{NAME}/labels", json=asked)
    assert answer.status_code == 400 and words in answer.json()["error"], answer.text
    assert (here / "results" / NAME / "experiment.json").read_bytes() == before


def test_a_figure_is_what_ewan_plot_draws(client: TestClient) -> None:
    asked = {"experiment": NAME, "figure": "goodput over time, lines congestion, run 1, from 1s", "style": "paper-1col"}
    found = client.post("/api/figure", json={**asked, "kind": "pdf"}).json()
    assert found["svg"].startswith("<?xml") and "prefers-color-scheme" in found["shown"]
    assert found["csv"].splitlines()[0].startswith("congestion,series,unit,") and found["files"]["pdf"]
    assert (found["spec"]["kind"], found["spec"]["run"], found["spec"]["lines"]) == ("time", 1, ["congestion"])
    assert found["command"] == (
        f"ewan results plot results/{NAME} 'goodput over time, lines congestion, run 1, from 1s' "
        "--style paper-1col --output "
        "goodput-over-time-lines-congestion-run-1-from-1s.pdf"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("godput by congestion", 'write "goodput"'),
        ("goodput by buffer", "no such parameter"),
        ("goodput over time, run 99", "no measured run"),
        ("x" * 2000, "figure"),
        ("", "figure"),
    ],
)
def test_a_figure_that_is_none_is_refused_in_a_line(client: TestClient, line: str, words: str) -> None:
    answer = client.post("/api/figure", json={"experiment": NAME, "figure": line})
    assert answer.status_code == 400 and words in answer.json()["error"], answer.text
    assert client.get(f"/api/experiments/{NAME}").status_code == 200, "others are answered"


def test_what_disturbed_a_live_run_is_told(here: Path, client: TestClient) -> None:
    place = synthetic.experiment(
        here / "results" / DISTURBED, [{"congestion": "cubic"}], seeds=(1,), pairs=2, told={"clock": "live"}
    )
    synthetic.watched(place, 1, 3)
    summary.analyse(place)
    found = client.get(f"/api/experiments/{DISTURBED}").json()
    assert found["watched"] and "of the load" in found["runs"][0]["disturbed"]
    (told,) = found["disturbances"]
    assert told["run"] == 1 and told["marks"] and told["time"].startswith("3.0 to")
    shutil.rmtree(place)


def test_two_are_compared_as_by_ewan_compare(client: TestClient) -> None:
    found = client.get(f"/api/compare/{NAME}/{OTHER}").json()
    assert [side["name"] for side in found["sides"]] == [NAME, OTHER]
    assert {"what": "congestion", "first": "cubic, reno", "second": "cubic, bic"} in found["parameters"]
    assert {row["point"] for row in found["rows"]} == {"cubic"} and found["certificates"] == []


def test_what_can_be_exported_is_what_the_command_takes(client: TestClient) -> None:
    kinds = {each["kind"]: each["into"] for each in client.get("/api/exports").json()}
    assert kinds["csv"] == "DIR" and kinds["reference"] == "FILE.csv" and kinds["nxe"] == "FILE.xml"
    assert "scale" not in kinds and "set" not in kinds


def test_results_are_exported(client: TestClient) -> None:
    answer = client.get(f"/results/{NAME}/export/csv")
    assert answer.status_code == 200 and f"{NAME}-csv.zip" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["csv/points.csv", "csv/runs.csv"]
        assert archive.read("csv/runs.csv").startswith(b"run,seed,status,congestion,")
    refused = client.get(f"/results/{NAME}/export/reference")
    assert refused.status_code == 404 and "archive" in refused.json()["error"], "it is made up, and has none"
    assert client.get(f"/results/{NAME}/export/help").status_code == 404


def test_a_report_is_framed_by_our_page_alone(client: TestClient) -> None:
    policy = client.get(f"/results/{NAME}/report.html").headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy and "sandbox" in policy and "allow-same-origin" not in policy
    assert "allow-scripts" not in policy and "script-src" not in policy
    missing = client.get(f"/results/{OTHER}/report.html")
    assert missing.status_code == 404 and f"ewan results report {OTHER}" in missing.json()["error"]


NAMING = (
    "topology: dumbbell\nwan: {loss: {pattern: {file: PATH}}}",
    "topology: dumbbell\nkinds: {host: {image: alpine, binds: ['PATH:/x']}}",
)


@pytest.mark.parametrize("text", NAMING)
def test_view_does_not_tell_which_files_there_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "Q").write_text("x")  # one letter, which a line that is cut has or has not
    with client_of(tmp_path, view=True) as viewer:
        told = [
            viewer.post("/api/describe", json={"text": text.replace("PATH", str(tmp_path / name))}).text.replace(
                name, ""
            )
            for name in ("Q", "Z")
        ]
    assert told[0] == told[1]


def test_view_draws_what_stands_in_a_file(tmp_path: Path) -> None:
    text = "topology: dumbbell\nwan: {loss: {pattern: {file: losses}}}"
    (tmp_path / "losses").write_text("0001")
    (tmp_path / "own.lab.yaml").write_text(text)
    (tmp_path / "own.scenario.yaml").write_text("x")
    with client_of(tmp_path, view=True) as viewer:
        drawn = [
            viewer.post("/api/describe", json={"name": "own.lab.yaml", "text": each}).json()["refusal"]
            for each in (text, "topology: dumbbell", f"{text} ")
        ]
        other = viewer.post(
            "/api/scenario/describe", json={"name": "own.scenario.yaml", "text": "lab: /etc/x.lab.yaml"}
        )
    assert drawn[:2] == [None, None] and "names files" in drawn[2]["message"]
    assert other.json()["error"].startswith("own.scenario.yaml: with --view")


def test_view_shows_all_and_changes_nothing(here: Path) -> None:
    with client_of(here, view=True) as viewer:
        assert viewer.get(f"/api/experiments/{NAME}").status_code == 200
        assert viewer.get(f"/api/compare/{NAME}/{OTHER}").status_code == 200
        asked = {"experiment": NAME, "figure": "goodput over time"}
        assert viewer.post("/api/figure", json=asked).status_code == 200
        assert viewer.post(f"/api/experiments/{NAME}/labels", json={"tags": ["+x"]}).status_code == 403
        assert viewer.post("/api/jobs", json={"kind": "report", "name": NAME}).status_code == 403
    assert "+x" not in (here / "results" / NAME / "experiment.json").read_text()


def test_what_takes_too_long_is_ended_and_the_next_is_answered(here: Path) -> None:
    directory = f"results/{NAME}"
    hurried = Reader(here, os.environ, longest_s=0.05)
    with pytest.raises(RefusedError, match=r"more than 0\.05 s"):
        hurried.ask("about", directory)
    reader = Reader(here, os.environ)
    assert reader.ask("about", directory)["name"] == NAME
    process = reader._process
    assert process is not None
    process.kill()
    assert reader.ask("about", directory)["name"] == NAME, "another one was begun"
    reader.close()


def test_the_process_that_draws_ends_with_the_server(here: Path) -> None:
    """However that ends."""
    asks = f"""
import os, signal
from pathlib import Path
from ewan.extras.studio.server.reader import Reader
from ewan.extras.studio.server.results import Experiments
reader = Reader(Path({str(here)!r}), os.environ)
reader.ask("about", "results/{NAME}")
print(reader._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 10
    while psutil.pid_exists(number := int(done.stdout)) and psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)
