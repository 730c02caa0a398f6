"""Starts and stops a Docker Engine that belongs to the tests alone.

In: Debian's dockerd. Out: an address for DOCKER_HOST. The engine lives in network and mount namespaces of its own, so
bridges, packet filter rules, sysctls and mounts end with it; what it would write into /etc, /opt and /run goes into a
run directory. Images stay below target/engine between runs. Stopping ends exactly the processes of this engine: the
daemon by its process id and start time, whatever outlives it by its run directory in the command line.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.container_engine import oci_runtime

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "target/engine"
LONGEST_START_S = 90.0
LONGEST_STOP_S = 40.0
# Where Docker and containerd write whatever they are told; the engine finds directories of its own there.
OWN = ("/etc/docker", "/opt/containerd", "/run/docker", "/run/containerd")


class EngineError(Exception):
    """What went wrong and what to do, as one line."""


def answers(host: str | None = None) -> bool:
    """Whether an engine answers, at an address or where docker looks by itself."""
    if not shutil.which("docker"):
        return False
    environment = dict(os.environ) | ({"DOCKER_HOST": host} if host else {})
    try:
        return subprocess.run(["docker", "version"], env=environment, capture_output=True, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def start_time(process: int) -> str | None:
    """When a process was started, in the kernel's ticks: with its id this names it for good. None if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


@dataclass(frozen=True)
class DockerEngine:
    """One engine: where its images are kept, and where it runs (a short path: sockets are in it)."""

    data: Path = DATA

    @property
    def run(self) -> Path:
        return Path("/run") / f"ewan-engine-{hashlib.sha256(str(self.data).encode()).hexdigest()[:8]}"

    @property
    def host(self) -> str:
        """The address, as DOCKER_HOST."""
        return f"unix://{self.run}/docker.sock"

    @property
    def note(self) -> Path:
        return self.run / "engine.json"

    @property
    def kept(self) -> Path:
        """There while an engine that was started by hand runs: no test run stops it."""
        return self.run / "kept"

    @property
    def log(self) -> Path:
        return self.data / "dockerd.log"

    def process(self) -> int | None:
        """The daemon's process id, while it lives."""
        try:
            note = json.loads(self.note.read_text())
        except (OSError, ValueError):
            return None
        process, begin = note.get("process"), note.get("start_time")
        return process if begin and start_time(process) == begin else None

    def start(self) -> None:
        """Starts the engine and waits until it answers; nothing where it runs. Raises EngineError."""
        if self.process():
            self.wait(LONGEST_START_S)
            return
        if os.geteuid() != 0:
            raise EngineError("an engine needs root: run as root")
        for command, package in (("dockerd", "docker.io"), ("docker", "docker.io"), ("unshare", "util-linux")):
            if not shutil.which(command):
                raise EngineError(f"{command} is missing: apt install {package}")
        self.remove()
        made = [path for path in OWN if not Path(path).exists()]
        for name in ("exec", *(Path(path).name + str(number) for number, path in enumerate(OWN))):
            (self.run / name).mkdir(parents=True)
        self.data.mkdir(parents=True, exist_ok=True)
        self.write({"made": made})
        for path in made:
            Path(path).mkdir()
        with self.log.open("wb") as log:
            daemon = subprocess.Popen(
                ["unshare", "--net", "--mount", "--propagation", "slave", "sh", "-c", self.script()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.write({"made": made, "process": daemon.pid, "start_time": start_time(daemon.pid)})
        try:
            self.wait(LONGEST_START_S, daemon)
        except BaseException:
            self.stop()
            raise

    def script(self) -> str:
        """What becomes the daemon, in its namespaces."""
        steps = [f"mount --bind {self.run}/{Path(path).name}{number} {path}" for number, path in enumerate(OWN)]
        options = [
            f"--data-root {self.data}/root",
            f"--exec-root {self.run}/exec",
            f"--pidfile {self.run}/dockerd.pid",
            f"--cgroup-parent {self.cgroup}",
            f"--host {self.host}",
        ]
        if oci_runtime.lacking():
            options.append(f"--add-runtime less={oci_runtime.install(self.run)} --default-runtime less")
        return " && ".join([*steps, "ip link set lo up", f"exec dockerd {' '.join(options)}"])

    @property
    def cgroup(self) -> str:
        return f"/{self.run.name}"

    def write(self, note: dict[str, object]) -> None:
        new = self.note.with_suffix(".new")
        new.write_text(json.dumps(note))
        new.rename(self.note)

    def wait(self, longest_s: float, daemon: subprocess.Popen[bytes] | None = None) -> None:
        """Until the engine answers. Raises EngineError with the last line of its log."""
        end = time.monotonic() + longest_s
        while not answers(self.host):
            ended = daemon.poll() is not None if daemon else not self.process()
            if ended or time.monotonic() > end:
                lines = self.log.read_text(errors="replace").strip().splitlines() or ["nothing in its log"]
                raise EngineError(f"dockerd {'ended' if ended else 'does not answer'} ({lines[-1]}): see {self.log}")
            time.sleep(0.2)

    def processes(self) -> list[int]:
        """Every process that has the run directory in its command line: containerd, the containers' shims."""
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit() and int(path.name) != os.getpid():
                with contextlib.suppress(OSError):
                    words = (path / "cmdline").read_bytes().split(b"\0")
                    if any(word.startswith(f"{self.run}/".encode()) for word in words):
                        found.append(int(path.name))
        return found

    def stop(self) -> None:
        """Ends the engine and its containers, and removes all but the images; nothing where it does not run."""
        self.end_containers()
        process = self.process()
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
            self.reap(process)
            end = time.monotonic() + LONGEST_STOP_S
            while self.process() and time.monotonic() < end:
                time.sleep(0.05)
                self.reap(process)
            if self.process():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        for left in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        self.remove()

    @staticmethod
    def reap(process: int) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, os.WNOHANG)

    def end_containers(self) -> None:
        """Removes every container: this engine has none but those of tests."""
        if not self.process():
            return
        environment = dict(os.environ) | {"DOCKER_HOST": self.host}
        asked = subprocess.run(["docker", "ps", "-aq"], env=environment, capture_output=True, text=True)
        if names := asked.stdout.split():
            subprocess.run(["docker", "rm", "-f", *names], env=environment, capture_output=True)

    def remove(self) -> None:
        """What a stopped engine has left: its run directory, directories made for it, its control groups."""
        if self.process() or not self.run.exists():
            return
        with contextlib.suppress(OSError, ValueError):
            for path in json.loads(self.note.read_text())["made"]:
                with contextlib.suppress(OSError):
                    Path(path).rmdir()  # empty: its content was in the run directory
        for group in Path("/sys/fs/cgroup").glob(f"**{self.cgroup}"):
            for path in sorted((group, *group.glob("**/")), reverse=True):
                with contextlib.suppress(OSError):
                    path.rmdir()
        shutil.rmtree(self.run, ignore_errors=True)


@contextlib.contextmanager
def held(path: Path, how: int) -> Iterator[bool]:
    """A lock for as long as the block runs; False where LOCK_NB did not get it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextlib.contextmanager
def running(engine: DockerEngine) -> Iterator[str | None]:
    """An engine for as long as the block runs: the one that answers (None: docker finds it by itself), or ours.

    Test runs side by side share it; the last one stops it, unless it was started by hand.
    """
    if answers():
        yield None
        return
    engine.data.mkdir(parents=True, exist_ok=True)
    changing, using = engine.data / "changing.lock", engine.data / "using.lock"
    try:
        with held(using, fcntl.LOCK_SH):
            with held(changing, fcntl.LOCK_EX):
                engine.start()
            yield engine.host
    finally:
        with held(changing, fcntl.LOCK_EX), held(using, fcntl.LOCK_EX | fcntl.LOCK_NB) as last:
            if last and not engine.kept.exists():
                engine.stop()
