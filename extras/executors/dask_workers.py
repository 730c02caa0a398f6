"""Workers on the machines of the file, started by Dask, dask-jobqueue or SSH, and removed afterwards.

In: a file for --cluster. Out: Dask's client, with facts about its workers. Certificates and the logs of jobs are in a
directory beside the experiment's runs, which all machines see where files are shared."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from ewan.extras.executors import credentials
from ewan.extras.executors.file import BATCH, Workers
from ewan.extras.executors.remote import ENDS
from ewan.labs.base.product import extra
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from ewan.extras.machines.ssh import ConnectedMachine

CONNECT_S = 10
DEATH_S = 60
"""A worker that finds no scheduler for so long ends."""
MEMORY = "memory"
"""Dask's resource of a worker, in bytes: runs take what they need of it."""
_LOOPBACK = "127.0.0.1"
_LOCAL = "${TMPDIR:-/tmp}"


class JobArguments(TypedDict):
    """The arguments of dask-jobqueue for a job, by its names; some only with some schedulers."""

    cores: int
    processes: int
    memory: str
    walltime: str
    queue: str | None
    job_extra_directives: list[str]
    job_script_prologue: list[str]
    python: str
    interface: str | None
    local_directory: str
    death_timeout: int
    job_name: str
    worker_extra_args: list[str]
    log_directory: NotRequired[str]
    account: NotRequired[str | None]
    resource_spec: NotRequired[str]
    project: NotRequired[str | None]
    memory_per_core_property_name: NotRequired[str]


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Dask's client; `dashboard`: an address for a browser, empty where there is none; `at_once`: the number of runs at
    once when all workers are there; `memory_bytes`: the memory of the worker with most, None: it is unknown."""

    client: Client
    dashboard: str
    at_once: int
    memory_bytes: int | None


def check() -> None:
    """LabError where Dask is not installed."""
    try:
        import dask_jobqueue  # noqa: F401
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise LabError(
            f"--cluster needs {error.name}, which is not installed: run {extra('cluster', 'make setup-cluster')}"
        ) from None


@contextlib.contextmanager
def started(workers: Workers, directory: Path) -> Iterator[WorkerPool]:
    """Workers, for as long as the context lasts, where `check` passed. LabError where they cannot be started."""
    from distributed import Client

    _quiet()
    with contextlib.ExitStack() as stack:
        if workers.engine == "dask":
            client = _connected(workers)
            stack.callback(_closed, client.close)
            served = client.scheduler_info()["services"].get("dashboard")
            yield WorkerPool(client, (served and client.dashboard_link) or "", max(len(client.nthreads()), 1), None)
            return
        security = credentials.new(directory / "keys")
        cluster = _cluster(workers, security, directory)
        stack.callback(_closed, cluster.close)
        client = stack.enter_context(Client(cluster, security=security, set_as_default=False))
        at_once, memory_bytes = workers.jobs * workers.cores, _memory(workers)
        if workers.engine in BATCH:
            _submit(workers, cluster)
        if workers.engine == "ssh":
            at_once *= len(workers.hosts)
            memory_bytes = stack.enter_context(_by_ssh(workers, cluster.scheduler_address, directory / "keys"))
        yield WorkerPool(client, cluster.dashboard_link or "", at_once, memory_bytes)


def script(workers: Workers, directory: Path) -> str:
    """The job that a batch scheduler is given, as people may look at it."""
    cluster = _batch(workers)
    arguments = _of_a_job(workers, directory)
    return str(cluster.job_cls("tls://<scheduler>", name="worker", **arguments).job_script())


def _cluster(workers: Workers, security: Security, directory: Path) -> Any:
    from distributed import LocalCluster

    scheduler = {"dashboard_address": f"{_LOOPBACK}:0"}
    try:
        if workers.engine in BATCH:
            if workers.interface:
                scheduler["interface"] = workers.interface
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _batch(workers)(
                    **_of_a_job(workers, directory),
                    n_workers=0,
                    security=security,
                    protocol="tls://",
                    scheduler_options=scheduler,
                    shared_temp_directory=str(directory),
                    silence_logs="critical",
                )
        there = {"interface": workers.interface} if workers.interface else {}
        if workers.engine == "local":
            there = {"host": _LOOPBACK}
        return LocalCluster(
            n_workers=workers.cores if workers.engine == "local" else 0,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=f"{_LOOPBACK}:0",
            protocol="tls://",
            security=security,
            resources={MEMORY: _memory(workers)},
            silence_logs=logging.CRITICAL,
            **there,
        )
    except (RuntimeError, OSError, ValueError) as error:
        raise LabError(f"{workers.file}: the workers could not be started: {_one_line(error)}") from None


def _batch(workers: Workers) -> Any:
    import dask_jobqueue as jobs

    return {"slurm": jobs.SLURMCluster, "oar": jobs.OARCluster, "pbs": jobs.PBSCluster}[workers.engine]


def _submit(workers: Workers, cluster: Any) -> None:
    """Hands all jobs to the scheduler; from then on each that ends is replaced."""
    for _ in range(workers.jobs):
        cluster.worker_spec.update(cluster.new_worker_spec())
    try:
        # `scale` raises no error to its caller.
        cluster.sync(cluster._correct_state)
    except (RuntimeError, OSError, ValueError) as error:
        raise LabError(f"{workers.file}: no job was taken: {_one_line(error)}") from None
    cluster.adapt(minimum_jobs=workers.jobs, maximum_jobs=workers.jobs, interval="2s", wait_count=1)


def _of_a_job(workers: Workers, directory: Path) -> JobArguments:
    """The arguments of dask-jobqueue; each core has a worker of its own, so that one that dies loses one run."""
    assert workers.walltime_s is not None and workers.memory_bytes is not None, "reading.py"
    hours, rest = divmod(workers.walltime_s, 3600)
    walltime = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    logs = directory / "logs"
    result: JobArguments = {
        "cores": workers.cores,
        "processes": workers.cores,
        "memory": f"{workers.memory_bytes}B",
        "walltime": walltime,
        "queue": workers.queue,
        "job_extra_directives": list(workers.options),
        "job_script_prologue": [f"export {ENDS}=$(($(date +%s) + {workers.walltime_s}))", *workers.setup],
        "python": f"{workers.python} -P",
        "interface": workers.interface,
        "local_directory": _LOCAL,
        "death_timeout": DEATH_S,
        "job_name": "ewan",
        "worker_extra_args": ["--resources", f"{MEMORY}={_memory(workers)}", "--no-dashboard"],
    }
    match workers.engine:
        case "slurm":
            result["account"] = workers.account
            result["log_directory"] = str(logs)
        case "pbs":
            result["account"] = workers.account
            result["log_directory"] = str(logs)
            result["resource_spec"] = f"select=1:ncpus={workers.cores}:mem={workers.memory_bytes}b"
        case "oar":
            result["project"] = workers.account
            result["memory_per_core_property_name"] = "not_applicable"
            result["job_extra_directives"] += [f"-O {logs}/%jobid%.out", f"-E {logs}/%jobid%.err"]
    return result


def _memory(workers: Workers) -> int:
    if workers.memory_of_a_worker is not None:
        return workers.memory_of_a_worker
    from ewan.labs.runtime.memory import free_memory_bytes

    return free_memory_bytes() // workers.cores


@contextlib.contextmanager
def _by_ssh(workers: Workers, scheduler: str, keys: Path) -> Iterator[int]:
    """A worker for each core of each host, which ends with the connection; the most memory that one has, in bytes."""
    from ewan.extras.machines.file import ClusterMachine
    from ewan.extras.machines.ssh import Fleet

    machines = tuple(ClusterMachine(f"host{n}", host, "", None, None, False) for n, host in enumerate(workers.hosts, 1))
    with Fleet(machines, workers.ssh_config) as fleet:
        place = f"~/.cache/ewan/workers/{keys.parent.parent.name}"

        directories: dict[str, str] = {}

        def begin(remote: ConnectedMachine) -> int:
            memory_bytes = _memory_there(workers, remote)
            sent = {
                key: remote.put((keys / name).read_bytes(), f"{place}/{name}")
                for key, name in credentials.NAMES.items()
            }
            directories[remote.name] = str(PurePosixPath(sent["tls_ca_file"]).parent)
            words = [workers.python, "-P", "-m", "distributed.cli.dask_worker", scheduler, "--no-dashboard"]
            words += ["--nworkers", str(workers.cores), "--nthreads", "1", "--death-timeout", str(DEATH_S)]
            words += ["--memory-limit", "0", "--resources", f"{MEMORY}={memory_bytes}"]
            words += [word for key, option in _TLS.items() for word in (option, sent[key])]
            if workers.interface:
                words += ["--interface", workers.interface]
            remote.start(words)
            return memory_bytes

        try:
            most_bytes = 0
            for name, result in fleet.each(begin, list(fleet.machines)).items():
                if isinstance(result, LabError):
                    raise LabError(f"{fleet.machines[name].ssh}: {result}")
                most_bytes = max(most_bytes, result)
            yield most_bytes
        finally:
            # No key stays, also where another host failed.
            remove = ["rm", "-rf"]
            fleet.each(lambda remote: remote.run([*remove, directories[remote.name]], sudo=False), list(directories))


def _memory_there(workers: Workers, remote: ConnectedMachine) -> int:
    """The memory of a worker: its share of the memory that the file gives, or that the host has."""
    if workers.memory_of_a_worker is not None:
        return workers.memory_of_a_worker
    said = remote.run(["cat", "/proc/meminfo"], sudo=False).stdout.decode(errors="replace")
    found = re.search(r"^MemAvailable: +([0-9]+) kB", said, re.MULTILINE)
    return int(found[1]) * 1024 // workers.cores if found else 0


_TLS = {"tls_ca_file": "--tls-ca-file", "tls_worker_cert": "--tls-cert", "tls_worker_key": "--tls-key"}


def _connected(workers: Workers) -> Client:
    from distributed import Client

    try:
        return Client(workers.address, security=credentials.given(workers), timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LabError(
            f"{workers.file}: no scheduler of Dask answers at {workers.address} ({_one_line(error)}): start one with "
            "`dask scheduler`, or write the address that it says"
        ) from None


def _closed(close: Callable[[], object]) -> None:
    """Closes a resource; errors are ignored."""
    with contextlib.suppress(Exception):
        close()


def _quiet() -> None:
    """Silences Dask's log of each connection that ends; relevant errors are reported by the caller."""
    for name in (
        "distributed",
        "distributed.worker",
        "distributed.nanny",
        "distributed.scheduler",
        "distributed.core",
        "asyncssh",
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
