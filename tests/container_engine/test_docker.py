"""The tests' container engine: it runs containers here, and nothing of it is left when it is stopped."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.container_engine import docker as module
from tests.container_engine import oci_runtime
from tests.container_engine.docker import OWN, ROOT, DockerEngine, EngineError, start_time
from tests.container_engine.fixtures import EngineOfTests

pytestmark = pytest.mark.untimed


def left_of(engine: DockerEngine) -> list[str]:
    """What a stopped engine has left on this machine."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if engine.run.name in line]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**{engine.cgroup}")]
    processes = [f"process {number}" for number in engine.processes()]
    return [*mounts, *groups, *processes, *([str(engine.run)] if engine.run.exists() else [])]


def test_an_engine_of_its_own_comes_and_goes(engine: EngineOfTests, tmp_path: Path) -> None:
    archive = ROOT / "target/images/emulator.tar"
    there = {path: Path(path).exists() for path in OWN}
    bridge = Path("/sys/class/net/docker0")
    had_bridge = bridge.exists()
    own = DockerEngine(tmp_path / "data")
    own.start()
    try:
        process = own.process()
        own.start()  # runs already
        assert own.process() == process
        environment = os.environ | {"DOCKER_HOST": own.host}

        def docker(*words: str) -> str:
            done = subprocess.run(["docker", *words], env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return done.stdout

        docker("load", "--quiet", "--input", str(archive))
        name = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").strip()
        docker("run", "--detach", "--privileged", "--network", "none", "--name", "left-over", name, "sleep", "1000")
        assert "lo" in docker("exec", "left-over", "ip", "-brief", "link")
        assert bridge.exists() == had_bridge  # its bridge is in its own namespace
    finally:
        own.stop()
    assert own.process() is None
    assert left_of(own) == []
    assert {path: Path(path).exists() for path in OWN} == there


def test_an_engine_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = DockerEngine(tmp_path / "data")
    monkeypatch.setattr(DockerEngine, "script", lambda self: "echo something is wrong; exit 1")
    with pytest.raises(EngineError, match=r"dockerd ended \(something is wrong\): see "):
        broken.start()
    assert left_of(broken) == []


def test_a_missing_daemon_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"dockerd is missing: apt install docker.io"):
        DockerEngine(tmp_path / "data").start()


def test_another_process_of_the_same_number_is_not_taken_for_the_engine(tmp_path: Path) -> None:
    engine = DockerEngine(tmp_path / "data")
    engine.run.mkdir()
    try:
        engine.write({"made": [], "process": os.getpid(), "start_time": "1"})
        assert engine.process() is None
        engine.write({"made": [], "process": 1 << 30, "start_time": None})  # ended at once
        assert engine.process() is None
        engine.write({"made": []})  # stopped while it was started
        assert engine.process() is None
        engine.write({"made": [], "process": os.getpid(), "start_time": start_time(os.getpid())})
        assert engine.process() == os.getpid()
        engine.write({"made": [], "process": os.getpid(), "start_time": "1"})
    finally:
        engine.remove()
    assert left_of(engine) == []


def test_a_wrong_word_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.container_engine", "begin"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, "usage: python -m tests.container_engine start|stop|status\n")


def test_the_wrapper_takes_out_what_cannot_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle, process = tmp_path / "bundle", tmp_path / "process.json"
    bundle.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = {"type": "RLIMIT_NOFILE", "hard": hard + 1, "soft": 1}
    wanted = {
        "capabilities": {"bounding": ["CAP_NET_ADMIN", "CAP_SYS_RESOURCE"], "ambient": None},
        "rlimits": [limit],
    }
    (bundle / "config.json").write_text(json.dumps({"process": wanted, "root": {"path": "x"}}))
    process.write_text(json.dumps(wanted))
    became: list[list[str]] = []
    monkeypatch.setattr(oci_runtime, "lacking", lambda: ["CAP_SYS_RESOURCE"])
    monkeypatch.setattr(os, "execv", lambda path, words: became.append(words))
    for words in (["create", "--bundle", str(bundle), "x"], ["exec", f"--process={process}", "x"]):
        monkeypatch.setattr(sys, "argv", ["oci_runtime.py", *words])
        oci_runtime.main()
        assert became[-1] == ["runc", *words]
    left = {
        "capabilities": {"bounding": ["CAP_NET_ADMIN"], "ambient": []},
        "rlimits": [limit | {"hard": hard}],
    }
    assert json.loads((bundle / "config.json").read_text()) == {"process": left, "root": {"path": "x"}}
    assert json.loads(process.read_text()) == left


def test_what_is_lacking_is_what_the_kernel_knows_and_we_have_not(monkeypatch: pytest.MonkeyPatch) -> None:
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    monkeypatch.setattr(oci_runtime, "bounding_set", lambda: (2 << last) - 1)
    assert oci_runtime.lacking() == []
    monkeypatch.setattr(oci_runtime, "bounding_set", lambda: (2 << last) - 1 - (1 << 24))
    assert oci_runtime.lacking() == ["CAP_SYS_RESOURCE"]  # number 24 in linux/capability.h


def test_the_last_of_two_runs_stops_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []
    monkeypatch.setattr(module, "answers", lambda: False)
    monkeypatch.setattr(DockerEngine, "start", lambda self: done.append("start"))
    monkeypatch.setattr(DockerEngine, "stop", lambda self: done.append("stop"))
    engine = DockerEngine(tmp_path / "data")
    with module.running(engine) as first:
        with module.running(engine) as second:
            assert first == second == engine.host
        assert done == ["start", "start"]
    assert done == ["start", "start", "stop"]


def test_where_an_engine_answers_none_is_started(engine: EngineOfTests) -> None:
    with module.running(DockerEngine(Path("/nowhere"))) as host:
        assert host is None
