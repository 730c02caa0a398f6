"""A cluster of Slurm on this host: Debian's munged, slurmctld and slurmd, one node, two CPUs.

In: a command. Out: the command's own output and exit status; it runs where sbatch and squeue are, in a network
namespace that has nothing but a loopback interface. `python -m tests.slurm_rig COMMAND …`. Needs root. All daemons and
jobs are in one PID namespace, whose first process is this one called again: nothing of it is left when the command has
ended, whatever ended it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "192.0.2.1"
"""On the loopback interface: Slurm looks for no name server where there is none but 127.0.0.1."""
NODE = "node1"
READY_S = 30.0
KILL_WAIT_S = 1
"""Between SIGTERM and SIGKILL of a job whose walltime is over."""
_CONFIGURATION = """
ClusterName=rig
SlurmctldHost={node}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CredType=cred/munge
PluginDir={libraries}/slurm-wlm
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_min_interval=100000,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait={kill_wait}
MinJobAge=300
NodeName={node} NodeAddr={address} CPUs=2 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=8000
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def installed() -> tuple[Path, Path]:
    """Debian's packages and their libraries, where ./setup.sh tests unpacked them, or where they are installed."""
    unpacked = ROOT / "target/slurm/usr"
    usr = unpacked if unpacked.exists() else Path("/usr")
    assert (usr / "sbin/slurmd-wlm").exists(), "there is no Slurm: run ./setup.sh tests"
    return usr, next(usr.glob("lib/*-linux-gnu"))


def environment(usr: Path, libraries: Path, place: Path) -> dict[str, str]:
    """Of the daemons, and of whoever submits jobs."""
    return {
        **os.environ,
        "PATH": f"{usr}/bin:{usr}/sbin:{os.environ.get('PATH', os.defpath)}",
        "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm",
        "SLURM_CONF": str(place / "slurm.conf"),
        "SLURM_RIG": str(place),
    }


def _first(words: list[str]) -> int:
    """Starts the daemons, waits until the node takes jobs, runs the command; in the new namespaces."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    socket.sethostname(NODE)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
    usr, libraries = installed()
    place = Path(tempfile.mkdtemp(prefix="ewan-slurm-"))
    try:
        place.chmod(0o755)
        for name in ("munge", "state", "spool"):
            (place / name).mkdir(mode=0o700 if name == "munge" else 0o755)
        key = place / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        configuration = _CONFIGURATION.format(
            node=NODE, address=ADDRESS, place=place, libraries=libraries, kill_wait=KILL_WAIT_S
        )
        (place / "slurm.conf").write_text(configuration)
        # Without a version of control groups that is named, slurmd does not start where none is writable.
        (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        own = environment(usr, libraries, place)
        munge = [f"--{name}-file={place}/munge/{name}" for name in ("key", "pid", "seed", "log")]
        _start(place, own, "munged", "--force", "--foreground", f"--socket={place}/munge/socket", *munge)
        _wait("munged", lambda: (place / "munge/socket").exists())
        _start(place, own, "slurmctld-wlm", "-D")
        _start(place, own, "slurmd-wlm", "-D", "-N", NODE, "-d", str(usr / "sbin/slurmstepd-wlm"))
        _wait("slurmd", lambda: _said(own, "sinfo", "-h", "-o", "%t") == "idle")
        return subprocess.run(words, env=own).returncode
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _start(place: Path, own: dict[str, str], program: str, *words: str) -> None:
    with (place / f"{program}.log").open("wb") as log:
        subprocess.Popen([program, *words], env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _said(own: dict[str, str], *words: str) -> str:
    return subprocess.run(words, env=own, capture_output=True, text=True).stdout.strip()


def _wait(what: str, there: Callable[[], bool]) -> None:
    end = time.monotonic() + READY_S
    while not there():
        assert time.monotonic() < end, f"{what} is not there after {READY_S:g} s"
        time.sleep(0.1)


def command(words: list[str]) -> list[str]:
    """What runs `words` with a cluster of their own."""
    alone = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
    return [*alone, sys.executable, "-m", "tests.slurm_rig", "--first", *words]


def main() -> int:
    """Calls itself in new namespaces."""
    if sys.argv[1:2] == ["--first"]:
        return _first(sys.argv[2:])
    assert sys.argv[1:], "which command?"
    return subprocess.run(command(sys.argv[1:]), cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
