"""The page's requests to a running server: descriptions, files, jobs. Labs that are up: tests/extras/studio."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ewan.extras.studio.server.guard import REFUSED_SOCKET
from ewan.extras.studio.server.jobs import Jobs
from ewan.extras.studio.tests.conftest import PORT
from ewan.labs.base.product import ROOT


def described(client: TestClient, text: str, name: str = "x.lab.yaml") -> dict[str, Any]:
    found: dict[str, Any] = client.post("/api/describe", json={"name": name, "text": text}).json()
    return found


def test_a_description_is_drawn_with_what_a_person_wants_to_know(client: TestClient) -> None:
    text = "topology: dumbbell\nrtt: 40ms\nwan: {rate: 100Mbit/s, loss: 0.1%}\nlayout: {left1: [7, -3]}\n"
    drawing = described(client, text)["drawing"]
    assert drawing["lab"] == "x" and {node["kind"] for node in drawing["nodes"]} == {"host", "router"}
    core = next(link for link in drawing["links"] if link["name"] == "core")
    assert (core["a"], core["b"], core["role"], core["bottleneck_of"]) == ("r1", "r2", "wan", len(drawing["pairs"]))
    assert (core["forward"]["rate_bps"], core["forward"]["delay_ns"]) == (10**8, 20 * 10**6)
    assert [words.split()[0] for words in core["forward"]["words"]] == ["loss", "queue", "rate", "delay"]
    pair = drawing["pairs"][0]
    assert (pair["rtt_ns"], pair["bottleneck"], pair["bdp_bytes"]) == (40 * 10**6, "core", 500_000)
    assert next((node["x"], node["y"]) for node in drawing["nodes"] if node["name"] == "left1") == (7, -3)


def test_where_nodes_are_drawn_does_not_change_the_plan(client: TestClient) -> None:
    plain = described(client, "topology: dumbbell\n")["drawing"]
    moved = described(client, "topology: dumbbell\nlayout: {r1: [5, 5]}\n")["drawing"]
    assert plain["plan_sha256"] == moved["plan_sha256"] and plain["nodes"] != moved["nodes"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("topology: dumbbell\nrtt: 40\n", 2, 'rtt "40": write'),
        ("topology: dumbbell\nwan:\n  rate: 1 Gbps/s\n", 3, "wan.rate"),
        ("topology: dumbbel\n", 1, 'write "dumbbell"'),
        ("topology: {\n", 2, "write YAML"),
        ("", 1, "is empty"),
        ("topology: dumbbell\nlayout: {left1: [a, b]}\n", 2, "layout"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(client: TestClient, text: str, line: int, words: str) -> None:
    refusal = described(client, text)["refusal"]
    assert refusal["line"] == line and words in refusal["message"], refusal
    assert "\n" not in refusal["message"] and "x.lab.yaml" not in refusal["message"]


def test_two_who_write_do_not_write_over_each_other(client: TestClient, tmp_path: Path) -> None:
    first = client.put("/api/files/here/a.lab.yaml", json={"text": "topology: dumbbell\n"})
    assert first.status_code == 200 and (tmp_path / "a.lab.yaml").read_text() == "topology: dumbbell\n"
    tag = first.json()["tag"]
    assert client.put("/api/files/here/a.lab.yaml", json={"text": "two", "made_of": tag}).status_code == 200
    late = client.put("/api/files/here/a.lab.yaml", json={"text": "three", "made_of": tag})
    assert late.status_code == 409 and "changed by another user" in late.json()["error"]
    assert client.put("/api/files/here/a.lab.yaml", json={"text": "four"}).status_code == 409
    assert client.get("/api/files/here/a.lab.yaml").json()["text"] == "two"


@pytest.mark.parametrize("text", ["topology: dumbbell\r\n", "\rtopology: star\n"])
def test_who_saves_twice_is_in_no_conflict_with_himself(client: TestClient, text: str) -> None:
    tag = client.put("/api/files/here/a.lab.yaml", json={"text": text}).json()["tag"]
    assert client.get("/api/files/here/a.lab.yaml").json() | {"tag": ""} == {
        "name": "a.lab.yaml", "where": "here", "text": text, "tag": "",
    }  # fmt: skip
    assert client.put("/api/files/here/a.lab.yaml", json={"text": "two", "made_of": tag}).status_code == 200


def test_what_is_no_regular_file_is_not_waited_for(client: TestClient, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.lab.yaml")
    for answer in (
        client.get("/api/files/here/a.lab.yaml"),
        client.put("/api/files/here/a.lab.yaml", json={"text": "two"}),
    ):
        assert answer.status_code == 400 and "is not a regular file" in answer.json()["error"]


def test_files_of_the_directory_and_the_library_are_listed(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "mine.lab.yaml").write_text("topology: dumbbell\n")
    (tmp_path / "other.yaml").write_text("x")
    found = client.get("/api/files").json()
    assert found[0] == {"name": "mine.lab.yaml", "where": "here"}
    assert {"name": "satellite.lab.yaml", "where": "library"} in found
    assert "other.yaml" not in {each["name"] for each in found}
    assert "geostationary" in client.get("/api/files/library/satellite.lab.yaml").json()["text"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "lab", "name": "no.lab.yaml"}, "save it first"),
        ({"kind": "run", "name": "mine.lab.yaml"}, "scenario.yaml"),
        ({"kind": "down", "name": "nobody"}, "nobody"),
        ({"kind": "rm", "name": "x"}, "kind"),
        ({"kind": "lab", "name": "--help"}, "write a name"),
        ({"kind": "lab", "name": "mine.lab.yaml", "more": 1}, "more"),
    ],
)
def test_work_that_cannot_be_is_refused_in_a_line(
    client: TestClient, tmp_path: Path, body: dict[str, Any], words: str
) -> None:
    (tmp_path / "mine.lab.yaml").write_text("topology: dumbbell\n")
    answer = client.post("/api/jobs", json=body)
    assert answer.status_code == 400 and words in answer.json()["error"], answer.text
    assert client.get("/api/jobs").json() == []


LIVE = "/api/live/nobody"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (f"{LIVE}/links/%00/carrier", {"up": True}, "control characters"),
        (f"{LIVE}/links/core%0A/set", {"words": {"rate": "1Mbit/s"}}, "control characters"),
        (f"{LIVE}/links/core/set", {"words": {"rate\0": "1Mbit/s"}}, "control characters"),
        (f"{LIVE}/capture", {"place": "left\0"}, "place: write it without control characters"),
        (f"{LIVE}/capture", {"place": "left1", "filter": "ip\0"}, "filter: write it without control characters"),
        (f"{LIVE}/capture", {"place": "left1", "filter": "x" * 200_000}, "filter: String should have at most"),
        ("/api/jobs", {"kind": "lab", "name": "mine.lab.yaml", "scale": "\0"}, "scale: write it without control"),
        ("/api/jobs", {"kind": "lab", "name": "mine.lab.yaml", "scale": "x" * 3_000_000}, "scale: String should have"),
        ("/api/paths", {"text": "", "source": ["a"], "sink": "b"}, "source: Input should be a valid string"),
        ("/api/jobs", {"kind": "down", "name": "x" * 900}, "no lab"),
    ],
)
def test_what_is_no_word_of_a_process_is_refused_in_a_line(
    client: TestClient, tmp_path: Path, path: str, body: dict[str, Any], words: str
) -> None:
    (tmp_path / "mine.lab.yaml").write_text("topology: dumbbell\n")
    answer = client.post(path, json=body)
    assert answer.status_code == 400 and words in answer.text and len(answer.text) < 1100, answer.text
    assert client.get("/api/jobs").json() == []


def test_a_socket_with_control_characters_in_its_address_is_refused(client: TestClient) -> None:
    address = f"ws://127.0.0.1:{PORT}/ws/live/nobody/packets?place=left1&filter=ip%00"
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect(address):
        pass
    assert refused.value.code == REFUSED_SOCKET


def test_each_name_in_a_body_has_a_limit(client: TestClient) -> None:
    """All but whole texts, which the limit of a request holds."""
    described = client.get("/api/openapi.json").json()
    paths, schemas = described["paths"].values(), described["components"]["schemas"]
    asked = [each["requestBody"] for methods in paths for each in methods.values() if "requestBody" in each]
    names = [each["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2] for each in asked]
    named = [field for name in names for key, field in schemas[name]["properties"].items() if key != "text"]
    strings = [each for field in named for each in field.get("anyOf", [field]) if each.get("type") == "string"]
    assert len(strings) > 15 and all("maxLength" in each or "enum" in each for each in strings), strings


def test_what_the_system_refuses_is_said_in_a_line(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Jobs, "every", full)
    answer = client.get("/api/jobs")
    assert answer.status_code == 503 and answer.json() == {"error": "this machine refuses it: No space left on device"}


def test_the_interface_is_described(client: TestClient) -> None:
    found = client.get("/api/openapi.json").json()
    assert found["openapi"].startswith("3.1") and "/api/live/{lab}/links/{link}/set" in found["paths"]
    told = found["paths"]["/api/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (
        told == {"$ref": "#/components/schemas/Begin"}
        and "kind" in found["components"]["schemas"]["Begin"]["properties"]
    )


def ended(jobs: Jobs, number: str, within_s: float = 20) -> Any:
    end = time.monotonic() + within_s
    while (job := jobs.find(number)).state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    return job


PYTHON = (sys.executable, "-c")


def test_a_job_outlives_who_began_it(tmp_path: Path) -> None:
    """After a server is killed, another one finds the job, with its output and its status."""
    begin = f"""
import os, sys
from pathlib import Path
from ewan.extras.studio.server.jobs import Jobs
job = Jobs(Path({str(tmp_path)!r}), os.environ, (sys.executable, "-c")).start(
    ["import time; print('begun', flush=True); time.sleep(0.5); print('done'); raise SystemExit(3)"])
os.kill(os.getpid(), 9)
"""
    dead = subprocess.run([*PYTHON, begin], cwd=ROOT)
    assert dead.returncode == -signal.SIGKILL
    job = ended(Jobs(tmp_path, os.environ), "1")
    assert (job.state, job.status, job.out) == ("ended", 3, "begun\ndone\n")


def test_a_job_that_is_stopped_ends_as_by_ctrl_c(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, os.environ, PYTHON)
    words = "import time\ntry:\n print('up', flush=True); time.sleep(60)\nexcept KeyboardInterrupt:\n print('down')"
    job = jobs.start([words])
    while "up" not in jobs.find(job.id).out:
        time.sleep(0.02)
    jobs.stop(job.id)
    found = ended(jobs, job.id)
    assert (found.status, found.out) == (0, "up\ndown\n")


def test_a_job_whose_process_was_killed_is_lost(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, os.environ, PYTHON)
    job = jobs.start(["import time; time.sleep(0.3)"])
    os.kill(json.loads((tmp_path / job.id / "job.json").read_text())["pid"], signal.SIGKILL)
    assert ended(jobs, job.id).state == "lost" and ended(Jobs(tmp_path, os.environ), job.id).state == "lost"


@pytest.mark.untimed  # it needs Node.js and the built page, which `make check` does without
def test_changes_of_a_text_leave_the_rest_of_it(tmp_path: Path) -> None:
    """The page's own tests (extras/studio/page/src, *.test.ts)."""
    files = ROOT / "target/studio/tests"
    done = subprocess.run(["node", "--test", str(files)], capture_output=True, text=True)
    assert done.returncode == 0 and "# fail 0" in done.stdout and "# pass 0" not in done.stdout, done.stdout
