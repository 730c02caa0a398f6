"""The files that `ewan lab compile` writes: the plan, its picture and tables, the containerlab file and the lab's
directory.

Comes in: a plan and a directory. Goes out: NAME.plan.json, NAME.svg, NAME.txt, NAME.clab.yml, and NAME/, which every
container has at /lab. What an earlier compilation or deployment of the same lab left there is replaced; a directory
that is another user's, or a lab's that is up, is refused with an OSError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from ewan.labs import cards
from ewan.labs.base import writing
from ewan.labs.plan import Node, Plan, to_json
from ewan.labs.render import containerlab, dashboards, svg

BINARY = "ewan-node"
"""In the lab's directory, where nodes are of images that have none."""

WAITS_S, POLL_S = 10.0, 0.02
"""For another `ewan lab compile` that writes into the same directory."""

# What deployments leave in a lab's directory, beside nodes/.
_LEFT = ("spinner-*", "changes.jsonl", "applied.json")


def written(
    plan: Plan,
    output: Path,
    *,
    sheet: str,
    version: str,
    ports: dashboards.Ports = dashboards.PORTS,
    live: bool = True,
    binary: Path | None = None,
) -> dict[str, Path]:
    """Writes the files and gives what each is: plan, picture, table, clab, directory.

    sheet: the tables as text; version: the tag of the images; ports: of the dashboards; live: False for a plan of the
    virtual clock, which no container can run, so that the last two are left out; so they are of a lab with
    cards of the host, which containers have not; binary: the node binary, which lies beside the rest where nodes are of
    images of one's own. OSError, with the file's name, where one cannot be written.
    """
    live = live and cards.refusal(plan) is None
    with _new(output):
        if live:
            _refuse(plan, output / plan.lab)
        files = _described(plan, output, sheet, {})
        return files | _for_containerlab(plan, output, version, ports, binary) if live else files


def written_for_machines(
    plan: Plan,
    shares: Mapping[str, Plan],
    machine_of: Mapping[str, str],
    output: Path,
    *,
    sheet: str,
    version: str,
    ports: dashboards.Ports = dashboards.PORTS,
    binary: Path | None = None,
) -> dict[str, Path]:
    """The same of a lab over several machines: MACHINE/NAME.clab.yml and MACHINE/NAME/ for each of them.

    shares: machine → its share; machine_of: of each node. The files of a machine are `clab MACHINE` in what is given.
    """
    with _new(output):
        for machine in shares:
            _refuse(plan, output / machine / plan.lab)
        files = _described(plan, output, sheet, machine_of)
        for machine, share in shares.items():
            (output / machine).mkdir(exist_ok=True)
            made = _for_containerlab(share, output / machine, version, ports, binary, hosts(plan))
            files[f"clab {machine}"] = made["clab"]
        return files


@contextmanager
def _new(output: Path) -> Iterator[None]:
    """The directory, for one who writes at a time; one that was not there is gone again after an error."""
    made = not output.exists()
    try:
        with writing.noticed(output):
            output.mkdir(parents=True, exist_ok=True)
            with _locked(output):
                yield
    except OSError:
        if made:
            shutil.rmtree(output, ignore_errors=True)
        raise


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """The lock is on the directory itself, so that nothing of it stays; it ends with its process. OSError where
    another process has it for long, as a user can who may read the directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    end = time.monotonic() + WAITS_S
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise OSError(
                        errno.EBUSY, "another `ewan lab compile` writes there for long", str(directory)
                    ) from None
                time.sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)


def _described(plan: Plan, output: Path, sheet: str, machine_of: Mapping[str, str]) -> dict[str, Path]:
    files = {
        "plan": output / f"{plan.lab}.plan.json",
        "picture": output / f"{plan.lab}.svg",
        "table": output / f"{plan.lab}.txt",
    }
    writing.write(files["plan"], to_json(plan))
    writing.write(files["picture"], svg.picture(plan, machine_of))
    writing.write(files["table"], sheet)
    return files


def _for_containerlab(
    plan: Plan, output: Path, version: str, ports: dashboards.Ports, binary: Path | None, names: str | None = None
) -> dict[str, Path]:
    files = {"clab": output / f"{plan.lab}.clab.yml", "directory": output / plan.lab}
    writing.make_folder(output, plan.lab)
    _clear(files["directory"])
    lay_out(plan, files["directory"], names)
    beside = f"{plan.lab}/{BINARY}" if binary is not None and containerlab.needs_binary(plan) else ""
    if binary is not None and beside:
        writing.write(output / beside, binary.read_bytes())
        (output / beside).chmod(0o755)
    writing.write(
        files["clab"], containerlab.render(plan, directory=plan.lab, version=version, ports=ports, binary=beside)
    )
    return files


def lay_out(plan: Plan, directory: Path, names: str | None = None) -> None:
    """The lab's directory as containers expect it at /lab: plan.json last, for it says that the rest is there.

    names: the file of names, where the plan is a machine's share of a larger one.
    """
    for node in containers(plan):
        writing.make_folder(directory, f"nodes/{node.name}")
    for name, text in (of_lab(plan) | ({} if names is None else {"hosts": names})).items():
        writing.make_folder(directory, str(Path(name).parent))
        writing.write(directory / name, text)
    writing.write(directory / "plan.json", to_json(plan))


def of_lab(plan: Plan) -> dict[str, str]:
    """The files of the lab's directory beside plan.json: path → text.

    The nodes' configuration is there to be read: each node writes its own again when it starts.
    """
    files = {"hosts": hosts(plan)}
    for node in containers(plan):
        run = f"{containerlab.LAB}/nodes/{node.name}"
        for service in node.services:
            files |= {f"nodes/{node.name}/{name}": text.replace("{run}", run) for name, text in service.files.items()}
    if any(containerlab.is_bridge(plan, node) for node in plan.nodes):
        files[containerlab.BRIDGES] = containerlab.bridges_script(plan)
    return files | dashboards.files(plan)


def containers(plan: Plan) -> Iterator[Node]:
    """The nodes that are containers."""
    return (node for node in plan.nodes if not containerlab.is_bridge(plan, node))


def hosts(plan: Plan) -> str:
    """The hosts file that every node sees (emulator/lab/src/hosts.rs): a node's first address of each family."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    for node in plan.nodes:
        if node.kind == "emulator":
            continue
        addresses = [address.split("/")[0] for interface in node.interfaces for address in interface.addresses]
        for v6 in (False, True):
            first = next((address for address in addresses if (":" in address) == v6), None)
            lines += [f"{first} {node.name}"] if first else []
    return "\n".join(lines) + "\n"


def _refuse(plan: Plan, directory: Path) -> None:
    """Raises for a directory that is there and not this lab's, or whose lab is up."""
    if not directory.exists():
        return
    try:
        found = orjson.loads((directory / "plan.json").read_bytes())
        ours = str(found["format"]).startswith("ewan-plan/") and found["lab"] == plan.lab
    except (OSError, ValueError, KeyError, TypeError):
        ours = not any(directory.iterdir()) if directory.is_dir() else False
    if not ours:
        raise OSError(errno.EEXIST, f"is there and is not the directory of a lab {plan.lab}", str(directory))
    if _is_up(directory):
        busy = f"is in use by a lab that is up (containerlab destroy -t {plan.lab}.clab.yml --cleanup)"
        raise OSError(errno.EBUSY, busy, str(directory))


def _is_up(directory: Path) -> bool:
    """Return whether a link of a lab that was deployed from this directory answers.

    The socket is named by the directory's descriptor: its own path may be longer than a socket's address can be.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for control in directory.glob("spinner-*.sock"):
            with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionRefusedError, FileNotFoundError):
                client.connect(f"/proc/self/fd/{descriptor}/{control.name}")
                return True
    finally:
        os.close(descriptor)
    return False


def _clear(directory: Path) -> None:
    """Removes what an earlier compilation or deployment left, and nothing else."""
    if (directory / "nodes").exists():
        shutil.rmtree(directory / "nodes")
    for pattern in _LEFT:
        for path in directory.glob(pattern):
            path.unlink()
