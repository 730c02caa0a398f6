"""Jobs that wait for each other: in order, one at a time, with or without a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from starlette.testclient import TestClient

from ewan.extras.studio.server.app import make
from ewan.extras.studio.server.guard import Access, names_of
from ewan.extras.studio.server.jobs import MOST_LISTED_BYTES, PLACE, Jobs, UnknownJobError
from ewan.labs.base.product import ROOT
from ewan.labs.context import Context

pytestmark = pytest.mark.slow

PYTHON = (sys.executable, "-c")
NOTE = "import sys, time; open({place!r}, 'a').write('{name}+'); time.sleep({s}); open({place!r}, 'a').write('{name}-')"


def until(what: Callable[[], bool], within_s: float = 60) -> None:
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "jobs", os.environ, PYTHON)


def words(place: Path, name: str, seconds: float = 0.2) -> list[str]:
    """A program that notes its begin and its end."""
    return [NOTE.format(place=str(place / "noted"), name=name, s=seconds)]


def noted(place: Path) -> str:
    path = place / "noted"
    return path.read_text() if path.exists() else ""


def test_jobs_begin_one_after_the_other_in_their_order(jobs: Jobs, tmp_path: Path) -> None:
    """No server looks after them: each that ends begins the next."""
    made = [jobs.queue(words(tmp_path, name)) for name in "abc"]
    assert [each.state for each in made] == ["running", "waiting", "waiting"]
    until(lambda: jobs.find(made[2].id).state == "ended")
    assert noted(tmp_path) == "a+a-b+b-c+c-"
    assert [each.status for each in jobs.every()] == [0, 0, 0]


def test_what_waits_begins_although_the_server_was_killed(tmp_path: Path) -> None:
    begin = f"""
import os
from pathlib import Path
from ewan.extras.studio.server.jobs import Jobs
jobs = Jobs(Path({str(tmp_path / "jobs")!r}), os.environ, {PYTHON!r})
jobs.queue({words(tmp_path, "a")!r})
jobs.queue({words(tmp_path, "b")!r})
os.kill(os.getpid(), 9)
"""
    dead = subprocess.run([*PYTHON, begin], cwd=ROOT)
    assert dead.returncode == -signal.SIGKILL
    until(lambda: noted(tmp_path) == "a+a-b+b-")


def test_the_next_server_begins_what_waits_behind_a_job_that_was_killed(jobs: Jobs, tmp_path: Path) -> None:
    first, second = jobs.queue(words(tmp_path, "a", 60)), jobs.queue(words(tmp_path, "b"))
    until(lambda: noted(tmp_path) == "a+")
    around = psutil.Process(json.loads((tmp_path / "jobs" / first.id / "job.json").read_text())["pid"])
    for process in (around, *around.children()):
        process.kill()
    later = Jobs(tmp_path / "jobs", os.environ, PYTHON)
    until(lambda: jobs.find(first.id).state == "lost")
    assert later.find(second.id).state == "waiting"
    later.turn()
    until(lambda: later.find(second.id).state == "ended")
    assert noted(tmp_path) == "a+b+b-"


ENDLESS = "import time\ntry:\n print('begun', flush=True); time.sleep(60)\nexcept KeyboardInterrupt:\n print('stopped')"


def test_a_command_whose_process_around_it_was_killed_is_at_work_and_stops(jobs: Jobs, tmp_path: Path) -> None:
    """Meanwhile it can be seen and the next one waits."""
    first = jobs.start([ENDLESS])
    until(lambda: "begun" in jobs.find(first.id).out)
    around = psutil.Process(json.loads((tmp_path / "jobs" / first.id / "job.json").read_text())["pid"])
    around.kill()
    around.wait()
    later = Jobs(tmp_path / "jobs", os.environ, PYTHON)
    second = later.queue(words(tmp_path, "b"))
    assert [each.state for each in (jobs.find(first.id), later.find(first.id), second)] == ["running"] * 2 + ["waiting"]
    assert noted(tmp_path) == ""
    later.stop(first.id)
    until(lambda: later.find(first.id).state == "lost")
    assert later.find(first.id).out == "begun\nstopped\n"
    later.turn()
    until(lambda: later.find(second.id).state == "ended")
    assert noted(tmp_path) == "b+b-" and later.stop(first.id).state == "lost"


def test_a_job_that_waits_can_be_taken_out(jobs: Jobs, tmp_path: Path) -> None:
    made = [jobs.queue(words(tmp_path, name, 0.5)) for name in "abc"]
    jobs.stop(made[1].id)
    assert [each.id for each in jobs.every()] == [made[2].id, made[0].id]
    with pytest.raises(UnknownJobError):
        jobs.find(made[1].id)
    until(lambda: jobs.find(made[2].id).state == "ended")
    assert noted(tmp_path) == "a+a-c+c-"
    assert jobs.queue(words(tmp_path, "d")).id == "4"  # no number comes again


def test_work_that_begins_at_once_holds_up_what_waits(jobs: Jobs, tmp_path: Path) -> None:
    jobs.start(words(tmp_path, "lab", 0.4))
    run = jobs.queue(words(tmp_path, "run"))
    assert run.state == "waiting"
    until(lambda: jobs.find(run.id).state == "ended")
    assert noted(tmp_path) == "lab+lab-run+run-"


def test_two_that_look_at_once_begin_a_job_once(jobs: Jobs, tmp_path: Path) -> None:
    first = jobs.queue(words(tmp_path, "a", 0.3))
    second = jobs.queue(words(tmp_path, "b", 0.3))
    look = f"""
import os
from pathlib import Path
from ewan.extras.studio.server.jobs import Jobs
jobs = Jobs(Path({str(tmp_path / "jobs")!r}), os.environ, {PYTHON!r})
while jobs.find({second.id!r}).state != "ended":
    jobs.turn()
"""
    others = [subprocess.Popen([*PYTHON, look], cwd=ROOT) for _ in range(3)]
    assert [other.wait(20) for other in others] == [0, 0, 0]
    assert noted(tmp_path) == "a+a-b+b-" and jobs.find(first.id).status == 0


def test_a_server_that_shows_alone_begins_nothing(tmp_path: Path) -> None:
    """A server that may change things begins waiting jobs as soon as it is there."""
    place = tmp_path / PLACE / "1"
    place.mkdir(parents=True)
    told = {"words": ["down", "nobody"], "started": "2026-01-31T12:00:00+00:00"}
    (place / "waiting.json").write_text(json.dumps(told))
    for view in (True, False):
        access = Access(names_of("127.0.0.1", 8765), 8765, view)
        app = make(Context.of(os.environ | {"EWAN_STATE": str(tmp_path / "state")}), tmp_path, tmp_path, access)
        headers = {"authorization": f"Bearer {access.token}"}
        with TestClient(app, base_url="http://127.0.0.1:8765", headers=headers) as client:
            if view:
                time.sleep(0.3)
                assert client.get("/api/jobs").json()[0]["state"] == "waiting"
                assert client.post("/api/jobs/1/stop").status_code == 403
            else:
                until(lambda: client.get("/api/jobs").json()[0]["state"] == "ended")


def test_a_link_of_no_lab_fails_at_no_time(client: TestClient) -> None:
    for asked in ({"lab": "nobody"}, {"lab": "../x"}, {"lab": "nobody", "at": "soon"}):
        body = {"link": "core", "up": False, "at": "+1s", **asked}
        assert client.post("/api/jobs/later", json=body).status_code == 400
    assert client.get("/api/jobs").json() == []
    assert client.get("/api/live/nobody/done").status_code == 400
    assert client.post("/api/live/nobody/recorded", json={"text": ""}).status_code == 400


def test_of_older_jobs_a_list_has_the_end_of_what_they_said(jobs: Jobs) -> None:
    many = [jobs.queue(["print('x' * 20_000 + 'end')"]) for _ in range(2)]
    until(lambda: jobs.find(many[1].id).state == "ended")
    newest, older = jobs.every()
    assert (len(newest.out), len(older.out)) == (20_004, MOST_LISTED_BYTES) and older.out.endswith("end\n")
    assert len(jobs.find(older.id).out) == 20_004
