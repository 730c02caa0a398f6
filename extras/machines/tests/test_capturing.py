"""A capture over several machines: its end, from any side. The machines are threads with queues."""

from __future__ import annotations

import io
import queue
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
import pytest
from pcapng import FileScanner, blocks

from ewan.extras.machines import joint_capture
from ewan.extras.machines.joint_capture import JointCapture
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.results import CompletedProgram
from ewan.labs.capture import reading
from ewan.labs.capture.points import Tap
from ewan.labs.capture.words import PIPE, Bounds, CaptureRequest
from ewan.labs.runtime.base import LabError
from ewan.labs.tests.test_capture_merging import HEAD, counts, mark, packet

pytestmark = pytest.mark.slow

TAPS = (Tap("core:r1", "r1", "eth1", "all"), Tap("core:r2", "r2", "eth0", "all"))


class Machine:
    """A machine's `ewan-node capture`: its packets, and its end."""

    def __init__(self, *pieces: bytes, end: str = "", hears: bool = True) -> None:
        self.pieces: queue.Queue[bytes | LabError] = queue.Queue()
        self.end, self.hears, self.error = end, hears, ""
        for piece in (HEAD, *pieces):
            self.pieces.put(piece)
        if end:
            self.pieces.put(b"")

    def read(self) -> bytes:
        piece = self.pieces.get()
        if isinstance(piece, LabError):
            raise piece
        return piece

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        if self.error:
            return CompletedProgram(2, b"", self.error.encode())
        told = {"seen": 2, "kept": 2, "dropped": 0, "end": self.end}
        return CompletedProgram(0, b"", orjson.dumps(told))

    def send_signal(self, number: int) -> None:
        if self.hears and number == signal.SIGINT and not self.end:
            self.end = "signal"
            self.pieces.put(counts(0, 2, 0))
            self.pieces.put(b"")

    def close(self) -> None:
        if not self.end:
            self.pieces.put(LabError("the connection was lost"))

    def lose(self) -> None:
        self.pieces.put(LabError("machine two: the connection was lost"))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDS_S", "CLOSES_S", "OPENS_S"):
        monkeypatch.setattr(joint_capture, name, 0.5)
    monkeypatch.setattr(joint_capture, "POLL_S", 0.05)


def begun(
    machines: Mapping[str, Machine], file: str, piped: bool = False, bounds: Bounds | None = None
) -> JointCapture:
    def start(machine: str, words: Sequence[str]) -> Machine:
        assert words[0] == "capture" and words[-1] == PIPE and "--marks" in words
        (tap,) = orjson.loads(words[words.index("--taps") + 1])
        assert tap["netns"] == f"/run/netns/ewan-x-{'r1' if machine == 'one' else 'r2'}"
        return machines[machine]

    def compare(machines: Sequence[str]) -> dict[str, Offset]:
        assert machines == ["one", "two"]
        return {"two": Offset(1_000, 200)}

    return JointCapture(
        "x",
        CaptureRequest(TAPS, bounds or Bounds(), "", file),
        piped,
        start=start,
        machine_of={"r1": "one", "r2": "two"},
        cpus={"one": (0, 1)},
        compare=compare,
    )


def times(text: bytes) -> list[int]:
    return [
        (found.timestamp_high << 32) + found.timestamp_low
        for found in FileScanner(io.BytesIO(text))
        if isinstance(found, blocks.EnhancedPacket)
    ]


def test_ctrl_c_asks_all_machines_and_the_file_is_whole(tmp_path: Path) -> None:
    machines = {"one": Machine(packet(5_000), packet(9_000)), "two": Machine(packet(8_000), mark(8_500))}
    capture = begun(machines, str(tmp_path / "f"))
    capture.end()
    assert capture.wait() == {"seen": 4, "kept": 3, "dropped": 0, "end": "signal"}
    capture.close()
    assert times((tmp_path / "f").read_bytes()) == [5_000, 7_000, 9_000]


def test_it_is_read_while_it_goes_on() -> None:
    machines = {"one": Machine(packet(5_000), mark(6_000)), "two": Machine(mark(9_000))}
    capture = begun(machines, PIPE, piped=True)
    lines = reading.shown(capture.stream)
    assert ".000005000 core:r1 in" in next(lines)
    capture.end()
    assert list(lines) == [] and capture.wait()["kept"] == 1


def test_a_machine_that_is_lost_ends_it_and_what_came_is_there(tmp_path: Path) -> None:
    machines = {"one": Machine(packet(5_000), packet(9_000)), "two": Machine(packet(8_000))}
    capture = begun(machines, str(tmp_path / "f"))
    machines["two"].lose()
    told = capture.wait()
    assert told["end"] == "lost" and told["lost"] == ["machine two: the connection was lost"]
    assert times((tmp_path / "f").read_bytes()) == [5_000, 7_000, 9_000]


def test_a_machine_that_does_not_end_is_lost_and_not_waited_for(tmp_path: Path) -> None:
    machines = {"one": Machine(packet(5_000)), "two": Machine(packet(8_000), hears=False)}
    capture = begun(machines, str(tmp_path / "f"))
    capture.end()
    started = time.monotonic()
    assert capture.wait()["lost"] == ["machine two did not end its capture in 0.5 s"]
    assert time.monotonic() - started < 3
    assert times((tmp_path / "f").read_bytes()) == [5_000, 7_000]


def test_bounds_end_it_on_all_machines(tmp_path: Path) -> None:
    machines = {name: Machine(*(packet(at) for at in range(5_000, 5_010)), mark(6_000)) for name in ("one", "two")}
    capture = begun(machines, str(tmp_path / "f"), bounds=Bounds(packets=3))
    assert capture.wait()["end"] == "packets"
    assert len(times((tmp_path / "f").read_bytes())) == 3
    both = {name: Machine(packet(5_000), end="time") for name in ("one", "two")}
    assert begun(both, str(tmp_path / "g"), bounds=Bounds(longest_ns=10)).wait()["end"] == "time"


def test_a_reader_that_goes_away_ends_it() -> None:
    machines = {name: Machine() for name in ("one", "two")}
    capture = begun(machines, PIPE, piped=True)
    capture.stream.close()
    for machine in machines.values():
        machine.pieces.put(packet(5_000) + mark(6_000))
    assert capture.wait()["end"] == "reader"


def test_a_reader_that_does_not_read_is_not_waited_for() -> None:
    machines = {name: Machine(*(packet(at, bytes(1400)) for at in range(5_000, 5_100))) for name in ("one", "two")}
    capture = begun(machines, PIPE, piped=True)
    for machine in machines.values():
        machine.pieces.put(mark(10_000))
    capture.end()
    with pytest.raises(LabError, match="whoever reads it did not take what it had"):
        capture.wait()
    capture.stream.close()


def test_a_machine_that_cannot_capture_is_said(tmp_path: Path) -> None:
    wrong = Machine(end="signal")
    wrong.error = "capturing at eth0: no such device"
    capture = begun({"one": Machine(), "two": wrong}, str(tmp_path / "f"))
    with pytest.raises(LabError, match="machine two: capturing at eth0: no such device"):
        capture.wait()
    with pytest.raises(LabError, match="No such file or directory"):
        begun({}, str(tmp_path / "none" / "f"))
