"""A capture over several machines: on each `ewan-node capture`, whose stream comes here through SSH.

In: a way to start programs on the machines, what is captured where, how far the machines' clocks are apart. Out: one
pcapng, a file or a stream (`ewan.labs.capture.merge`), and what was counted. The clocks are compared before the
capture, again and again while it goes on, and at its end.

A machine that is lost ends the capture: what came until then is whole. One that sends faster than the others has its
packets wait here, up to a bound, and then there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Protocol

import orjson

from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.results import CompletedProgram
from ewan.labs.base.writing import opened
from ewan.labs.capture import words
from ewan.labs.capture.merge import Clock, Merger
from ewan.labs.capture.points import Tap
from ewan.labs.capture.words import CaptureCounts, CaptureRequest
from ewan.labs.runtime.base import LabError

COMPARE_S = 10.0
"""Between comparisons of the clocks: at 10 ppm they go apart by 100 µs."""
OPENS_S = 15.0
"""A machine's sockets are open when the head of its stream comes."""
ENDS_S = 3.0
"""A machine that has not sent its end so long after it was asked to is lost."""
CLOSES_S = 1.5
"""For programs that are ended by force."""
POLL_S = 0.5
MOST_HELD_BYTES = 128 << 20
"""Bytes of one machine's packets that wait for those of others."""


class CaptureProcess(Protocol):
    """A program on a machine while it runs, as `ssh.RemoteProcess` is; its methods raise LabError."""

    def read(self) -> bytes:
        """Read the next bytes of its standard output; empty at its end."""

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        """Waits for its end."""

    def send_signal(self, number: int) -> None:
        """Sends it a signal, if it still runs."""

    def close(self) -> None:
        """Ends it without waiting; waiting readers return."""


Start = Callable[[str, Sequence[str]], CaptureProcess]
"""A machine's node binary with these arguments."""
Compare = Callable[[Sequence[str]], Mapping[str, Offset]]
"""The clocks of these machines now; one that it leaves out is the one with which it compares."""


class JointCapture:
    """See `ewan.labs.runtime.base.OpenCapture`. `machine_of`: node → machine; `cpus`: of each, where it may run."""

    def __init__(
        self,
        lab: str,
        wanted: CaptureRequest,
        piped: bool,
        *,
        start: Start,
        machine_of: Mapping[str, str],
        cpus: Mapping[str, Sequence[int]],
        compare: Compare,
    ) -> None:
        taps: dict[str, list[Tap]] = {}
        for tap in wanted.taps:
            taps.setdefault(machine_of[tap.node], []).append(tap)
        names = {machine: list(dict.fromkeys(tap.name for tap in of)) for machine, of in taps.items()}
        self._machines, self._compare = list(taps), compare
        try:
            self._merger = Merger(names, self._clocks(), wanted.bounds)
        except ValueError as error:
            raise LabError(f"{wanted.file}: {error}") from None
        self._sink = _Sink(wanted.file, piped)
        self._changed = threading.Condition()
        self._ending, self._done = threading.Event(), threading.Event()
        self._end, self._ends = "", dict.fromkeys(taps, "")
        self._lost: dict[str, str] = {}
        self._error: LabError | None = None
        self._over = False
        self._processes: dict[str, CaptureProcess] = {}
        try:
            for machine, of in taps.items():
                self._processes[machine] = start(machine, _words(lab, of, wanted, cpus.get(machine, ())))
        except BaseException:
            for process in self._processes.values():
                process.close()
            self._sink.close()
            raise
        self._opened = {machine: threading.Event() for machine in taps}
        self._readers = [_begun(self._read, machine) for machine in taps]
        self._conductor = _begun(self._conduct)
        try:
            for opened in self._opened.values():
                # One that is late is one that does not end.
                opened.wait(OPENS_S)
        except BaseException:
            self.close()
            raise

    @property
    def stream(self) -> IO[bytes]:
        """The stream of the capture, as it was `piped`."""
        assert self._sink.stream is not None
        return self._sink.stream

    def end(self) -> None:
        """Asks all machines to end; those that do not are lost."""
        self._stop("signal")

    def wait(self) -> CaptureCounts:
        """Waits until all captures have ended, and returns their counts."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        counted = self._merger.counted
        ends = [self._end, *self._ends.values()]
        counts = CaptureCounts(
            seen=sum(max(each.seen, each.written) for each in counted),
            kept=sum(each.written for each in counted),
            dropped=sum(each.dropped for each in counted),
            end=next(filter(None, ends), "signal"),
        )
        if self._lost:
            counts["end"], counts["lost"] = "lost", list(self._lost.values())
        return counts

    def close(self) -> None:
        """Ends the captures that still run."""
        self._stop("signal")
        self._conductor.join(ENDS_S + CLOSES_S)

    def _stop(self, why: str) -> None:
        self._end = self._end or why
        self._ending.set()

    def _clocks(self) -> dict[str, Clock]:
        """The clocks of the machines other than the one with which they are compared."""
        found = self._compare(self._machines)
        return {name: Clock(offset.ns, offset.uncertainty_ns) for name, offset in found.items()}

    def _read(self, machine: str) -> None:
        """Merges all of a machine's stream into the output."""
        process = self._processes[machine]
        try:
            while piece := process.read():
                self._opened[machine].set()
                with self._changed:
                    while not self._has_room(machine):
                        self._changed.wait(POLL_S)
                    if self._over:
                        return
                    self._merger.add(machine, piece)
                    self._go_on()
            done = process.wait(ENDS_S)
            if done.returncode == 0:
                self._ends[machine] = orjson.loads(done.said)["end"]
            elif machine not in self._lost:
                self._fail(LabError(f"machine {machine}: {done.said}"))
        except ValueError as error:
            self._fail(LabError(str(error)))
        except LabError as error:
            self._lost.setdefault(machine, str(error))
            self._stop("lost")
        self._opened[machine].set()
        with self._changed:
            if self._over:
                return
            self._merger.finished(machine)
            self._go_on()
            if all(self._ends.values()):
                # Each by itself: --for is over.
                self._stop(next(iter(self._ends.values())))

    def _has_room(self, machine: str) -> bool:
        return self._ending.is_set() or self._merger.held_bytes(machine) < MOST_HELD_BYTES

    def _fail(self, error: LabError) -> None:
        self._error = self._error or error
        self._stop("failed")

    def _go_on(self) -> None:
        """Writes the packets that can be written; the caller holds the lock."""
        self._write(self._merger.take())
        if self._merger.end is not None:
            self._stop(self._merger.end)
        self._changed.notify_all()

    def _write(self, piece: bytes) -> None:
        try:
            self._sink.write(piece)
        except BrokenPipeError:
            self._stop("reader")
        except OSError as error:
            self._fail(LabError(f"{self._sink.name}: {error.strerror}"))

    def _conduct(self) -> None:
        """Compares the clocks until the end, then sees that all end."""
        while not self._ending.wait(COMPARE_S):
            with contextlib.suppress(LabError):
                self._note(self._clocks())
        self._end_all()
        clocks: Mapping[str, Clock] = {}
        if not self._lost and self._error is None:
            with contextlib.suppress(LabError):
                clocks = self._clocks()
        if self._changed.acquire(timeout=POLL_S):
            try:
                # One of them may still wait for a machine that is lost; what comes now comes too late.
                for machine in self._machines:
                    self._merger.finished(machine)
                self._over = True
                self._write(self._merger.close(clocks))
                self._sink.close()
            finally:
                self._changed.release()
        else:
            self._error = LabError("the capture had to be ended: whoever reads it did not take what it had")
        self._done.set()

    def _note(self, clocks: Mapping[str, Clock]) -> None:
        # Who has the lock may wait for a reader that does not read.
        if self._changed.acquire(timeout=POLL_S):
            try:
                for machine, clock in clocks.items():
                    self._merger.compared(machine, clock)
            finally:
                self._changed.release()

    def _end_all(self) -> None:
        """Asks all machines to end, side by side, and waits for their last packets."""
        until = time.monotonic() + ENDS_S
        asking = [_begun(_ask_to_end, process) for process in self._processes.values()]
        for thread in [*asking, *self._readers]:
            thread.join(max(until - time.monotonic(), 0))
        for machine in self._machines:
            if not self._ends[machine]:
                self._lost.setdefault(machine, f"machine {machine} did not end its capture in {ENDS_S:g} s")
        until = time.monotonic() + CLOSES_S
        closing = [_begun(_close, process) for process in self._processes.values()]
        for thread in [*closing, *self._readers]:
            thread.join(max(until - time.monotonic(), 0))


class _Sink:
    """The destination of a capture: a file, standard output, or `stream` for a reader in this process."""

    def __init__(self, file: str, piped: bool) -> None:
        self.name = "standard output" if file == words.PIPE else file
        self.stream: IO[bytes] | None = None
        self._out: IO[bytes] | None
        if piped:
            read, write = os.pipe()
            self.stream, self._out = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        elif file == words.PIPE:
            self._out = os.fdopen(os.dup(1), "wb")
        else:
            try:
                self._out = opened(Path(file))
            except OSError as error:
                raise LabError(f"{file}: {error.strerror}") from None

    def write(self, piece: bytes) -> None:
        """Write all of it, now. An error (OSError) is raised once; later bytes are left out."""
        if self._out is None or not piece:
            return
        try:
            self._out.write(piece)
            self._out.flush()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Closes the destination; bytes that could not be written are left out."""
        out, self._out = self._out, None
        if out is not None:
            with contextlib.suppress(OSError):
                out.close()


def _begun(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, name="ewan-capture", daemon=True)
    thread.start()
    return thread


def _ask_to_end(process: CaptureProcess) -> None:
    with contextlib.suppress(LabError):
        process.send_signal(signal.SIGINT)


def _close(process: CaptureProcess) -> None:
    with contextlib.suppress(LabError):
        process.close()


def _words(lab: str, taps: Sequence[Tap], wanted: CaptureRequest, cpus: Sequence[int]) -> list[str]:
    """The arguments of the node binary on one machine; bounds of the file are kept here."""
    bounds = replace(wanted.bounds, most_bytes=words.UNBOUNDED)
    where = ["--cpus", ",".join(map(str, cpus))] if cpus else []
    return ["capture", "--tell", "--marks", *where, *words.options(lab, taps, bounds, wanted.program), "--", words.PIPE]
