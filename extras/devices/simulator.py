"""A simulated box: a process of its own behind two ports, with a command line, for trials and tests without a device.

In: a model of GtrcNET, the names of its two ports, the address of its command line. Out: interfaces of those names,
cabled to a box; between them our own link (`ewan-node link`) in a namespace of the box's own; a Unix socket, or a
serial line (a pseudo-terminal). Words on standard input switch faults: `silent`, `rounding`, `reset`, `well`. It needs
root."""

from __future__ import annotations

import os
import pty
import select
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ewan.extras.devices import wire
from ewan.extras.devices.box import SimulatedBox
from ewan.labs import plan as plans
from ewan.labs.base import interrupt
from ewan.labs.base.codec import replace
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import bytes_in
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import Abilities
from ewan.labs.link import (
    Bare,
    BernoulliLoss,
    Change,
    ConstantDelay,
    Direction,
    DropTail,
    NoLoss,
    Queue,
    plain_direction,
)
from ewan.labs.plan import Containers, End, Interface, Link, Node, Plan, Spinner
from ewan.labs.runtime import boxes, control, spinners
from ewan.labs.runtime.boxes import LINK, ip
from ewan.labs.runtime.requests import LinkSeriesAnswer, LinkSeriesRequest, LinkSetRequest

DRIVER = "gtrcnet"
QUEUE_BYTES = 16 << 20
LEAST_FRAME = 64
PORTS = ("p0", "p1")
LONGEST = 4096  # bytes of a command


@contextmanager
def simulated(
    binary: Path, folder: Path, model: str, ports: Sequence[str], table: wire.BoxVocabulary, cpu: int, mtu: int = 1500
) -> Iterator[SimulatedBox]:
    """A box that runs; it is removed with all of its parts at the end. `folder` is empty, and only the box uses it."""
    known = catalogue.models(DRIVER)
    if model not in known or model not in table.models:
        raise UserError(f'model "{model}": write {" or ".join(known)}')
    abilities = known[model].abilities
    lab, namespace = boxes.lab(os.getpid()), boxes.namespace(os.getpid())
    with ExitStack() as ending:
        with interrupt.deferred():
            boxes.remove_killed()
            ip("netns", "add", namespace)
            ending.callback(ip, "netns", "del", namespace)
            for outer, inner in zip(ports, PORTS, strict=True):
                inside = ("peer", "name", inner, "mtu", str(mtu), "netns", namespace)
                ip("link", "add", "name", outer, "mtu", str(mtu), "type", "veth", *inside)
            for inner in PORTS:
                ip("-n", namespace, "link", "set", inner, "up")
            for outer in ports:
                ip("link", "set", outer, "up")
        datapath = ending.enter_context(_link(binary, folder, lab, abilities, cpu, mtu))
        box = SimulatedBox(table, model, abilities, datapath)
        box.defaults()
        yield box


class _Spinner:
    """See `ewan.extras.devices.box.Datapath`; the milliseconds are the spinner's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def apply(self, heading: str, values: Mapping[str, int]) -> None:
        loss = BernoulliLoss(values["loss_ppb"]) if values["loss_ppb"] else NoLoss()
        change = Change(rate_bps=values["rate_bps"], delay=ConstantDelay(values["delay_ns"]), loss=loss)
        spinners.ask(
            self._folder, 0, LinkSetRequest.of(change, LINK, "forward" if heading == "forward" else "backward")
        )

    def complete(self) -> int:
        return self._series(0, 0).end_ms

    def sent(self, heading: str, since: int, rows: int) -> tuple[int, Sequence[int]]:
        found = self._series(since, rows)
        columns = found.forward if heading == "forward" else found.backward
        return max(found.first_ms, since), columns.out_bytes

    def _series(self, since: int, rows: int) -> LinkSeriesAnswer:
        return spinners.ask(self._folder, 0, LinkSeriesRequest(LINK, since, rows, ("out_bytes",)))


@contextmanager
def _link(binary: Path, folder: Path, lab: str, abilities: Abilities, cpu: int, mtu: int) -> Iterator[_Spinner]:
    way = _direction(abilities)
    ends = End(LINK, PORTS[0]), End(LINK, PORTS[1])
    interfaces = tuple(
        Interface(name, f"02:00:00:00:00:{number:02x}", mtu, (), (), Bare(), False) for number, name in enumerate(PORTS)
    )
    plan = Plan(
        lab=lab,
        topology="graph",
        seed=1,
        routing="static",
        containers=Containers(),
        nodes=(Node(LINK, "emulator", interfaces, (), {}, (), (), None, None),),
        wires=(),
        links=(Link(LINK, "wan", "user", LINK, *PORTS, *ends, way, way),),
        spinners=(Spinner(cpu, (LINK,)),),
        pairs=(),
        host_cpus=tuple(sorted(os.sched_getaffinity(0) - {cpu}) or [cpu]),
    )
    (folder / "plan.json").write_bytes(plans.to_json(plan))
    process = spinners.start(binary, folder, lab, plan.spinners, lambda: None)[0]
    try:
        yield _Spinner(folder)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(control.ENDS_S)
        process.kill()
        process.wait()


def _direction(abilities: Abilities) -> Direction:
    """The widest that the box can be: a change finds room in its store."""
    rate, delay = abilities.rate_bps.most, abilities.delay.delay_ns.most
    held = bytes_in(rate, delay) + QUEUE_BYTES
    way = plain_direction(abilities.framing, rate, Queue(None, QUEUE_BYTES, DropTail()), 0)
    return replace(way, store_bytes=held, store_packets=held // LEAST_FRAME)


def serve(
    box: SimulatedBox, address: str, folder: Path, delay_s: float = 0.0, told: int | None = 0, owner: int | None = None
) -> None:
    """Answers on the command line at `address` until `told`, a descriptor, ends.

    `unix:/path` is a socket, `/path` a symbolic link to a serial line. `folder`: the box's, in which the path is noted,
    so that it is removed also when this process is killed. `delay_s`: the delay of each answer. `owner`: the user who
    may open it besides root, as drivers run as the user who called sudo."""
    with _channel(address, folder, owner) as channel:
        rest = b""
        while True:
            ready = select.select([*channel.readable(), *([] if told is None else [told])], [], [])[0]
            if told in ready:
                words = os.read(told or 0, LONGEST)
                if not words:
                    return
                for word in words.decode(errors="replace").split():
                    _tell(box, word)
            for part in channel.read(ready):
                rest = (rest + part)[-LONGEST:]
            *lines, rest = rest.replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                if line.strip() and (answer := box.answer(line.decode(errors="replace"))) is not None:
                    time.sleep(delay_s)
                    channel.write(answer.encode() + b"\r\n")


def _tell(box: SimulatedBox, word: str) -> None:
    match word:
        case "silent":
            box.faults.silent = True
        case "rounding":
            box.faults.rounding = True
        case "reset":
            box.defaults()
        case "well":
            box.faults.silent = box.faults.rounding = False
        case _:
            print(f"{word}: write silent, rounding, reset or well", file=sys.stderr, flush=True)


class _Channel:
    """The box's end of its command line."""

    def __init__(self, listener: socket.socket | None, terminal: int | None) -> None:
        self._listener, self._terminal = listener, terminal
        self._stream: socket.socket | None = None

    def readable(self) -> list[Any]:
        """The objects to wait for."""
        return [each for each in (self._listener, self._terminal, self._stream) if each is not None]

    def read(self, ready: Sequence[Any]) -> Iterator[bytes]:
        """The bytes that have come."""
        if self._terminal is not None and self._terminal in ready:
            yield os.read(self._terminal, LONGEST)
        if self._stream is not None and self._stream in ready:
            part = self._stream.recv(LONGEST)
            if not part:
                self._stream.close()
                self._stream = None
            yield part or b"\n"
        if self._listener is not None and self._listener in ready:
            if self._stream is not None:
                self._stream.close()
            self._stream = self._listener.accept()[0]

    def write(self, text: bytes) -> None:
        """Sends an answer, if a client is connected."""
        if self._terminal is not None:
            os.write(self._terminal, text)
        elif self._stream is not None:
            with suppress(OSError):
                self._stream.sendall(text)


def _keep_for(path: Path, owner: int | None) -> None:
    path.chmod(0o600)
    if owner is not None:
        os.chown(path, owner, -1, follow_symlinks=False)


@contextmanager
def _channel(address: str, folder: Path, owner: int | None) -> Iterator[_Channel]:
    path = Path(address.removeprefix("unix:"))
    if not path.is_absolute():
        raise UserError(f"{address}: write unix:/path for a socket, or /path for a serial line")
    if path.is_symlink() or path.exists():
        raise UserError(f"{path} is there already: remove it, or write another path")
    if address.startswith("unix:"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            try:
                (folder / boxes.ADDRESS).write_text(str(path))
                _keep_for(path, owner)
                listener.listen()
                yield _Channel(listener, None)
            finally:
                path.unlink(missing_ok=True)
        return
    ours, theirs = pty.openpty()
    try:
        tty.setraw(theirs)
        _keep_for(Path(os.ttyname(theirs)), owner)
        path.symlink_to(os.ttyname(theirs))
        (folder / boxes.ADDRESS).write_text(str(path))
        yield _Channel(None, ours)
    finally:
        path.unlink(missing_ok=True)
        os.close(ours)
        os.close(theirs)
