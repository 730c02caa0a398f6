"""Sends probes through a lab that is up, by one process that has its sockets in all nodes: `ewan-node probe`.

In: probes (`ewan.labs.runtime.probe_documents`). Out: its answer. In a lab over several machines
`ewan.extras.machines.joint_probes` does the same.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime.base import Seen
from ewan.labs.runtime.probe_documents import Probe, ProbeAnswer, ProbeRequest, ProbeResult


class _Started(Struct, tag_field="event", tag="started"):
    """The program writes one of these events, or an error message, to standard error."""

    probe: str
    index: int
    of: int
    longest_ns: int


class _Finished(Struct, tag_field="event", tag="finished"):
    probe: str
    index: int
    of: int
    elapsed_ns: int


def send(
    probes: Sequence[Probe],
    cpus: Sequence[int],
    binary: Path,
    tell: Callable[[str], None],
    seen: Seen | None = None,
) -> ProbeAnswer:
    """The answer; RuntimeError with one line when nothing could be sent. The probes' threads run on these CPUs.

    `tell` gets a line of each probe that begins. `seen` is called after each probe, before the next one begins.
    """
    results: list[ProbeResult] = []
    with subprocess.Popen(
        [binary, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        last = "no answer"
        try:
            for number, probe in enumerate(probes, 1):
                # One at a time: what is made of its result meanwhile takes no CPU from the next.
                child.stdin.write(codec.line(ProbeRequest(tuple(cpus), (probe,))).decode())
                child.stdin.flush()
                for line in child.stderr:
                    event = _event(line)
                    if event is None:
                        last = line.strip() or last
                    elif isinstance(event, _Finished):
                        break
                    else:
                        tell(begins(event.probe, number, len(probes), event.longest_ns))
                answer = child.stdout.readline()
                if not answer.endswith("\n"):
                    break
                results += _results(answer)
                if seen is not None:
                    seen(results)
            child.stdin.close()
        except BrokenPipeError:  # it has printed the reason
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()  # what it did not take would be tried again
        except BaseException:
            child.kill()
            raise
        last = child.stderr.read().strip() or last
    if child.returncode != 0 or len(results) < len(probes):
        raise RuntimeError(f"ewan-node probe: {last}")
    return ProbeAnswer(tuple(results))


def _results(line: str) -> tuple[ProbeResult, ...]:
    try:
        return codec.decode(ProbeAnswer, line.encode(), "answer").results
    except ValueError as error:
        raise RuntimeError(f"ewan-node probe: {error}") from None


def begins(probe: str, number: int, of: int, longest_ns: int) -> str:
    """The line that says which probe begins; numbers from 1."""
    return f"probe {number} of {of}: {probe} (up to {longest_ns / NS_PER_SECOND:.1f} s)"


def _event(line: str) -> _Started | _Finished | None:
    """None: an error message."""
    event: _Started | _Finished | None = None
    with contextlib.suppress(ValueError):
        event = codec.decode(cast(Any, _Started | _Finished), line.encode(), "event")
    return event
