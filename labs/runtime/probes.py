"""Sends probes through a lab that is up, by one process that has its sockets in all nodes: `ewan-node probe`.

In: probes as emulator/traffic/src/probe/request.rs has them. Out: its answer, {"format", "results"}: of each probe the
result or {"kind": "failed", "error"}. In a lab over several machines `ewan.extras.machines.joint_probes` does the same.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime.base import Seen

ANSWER_FORMAT = "ewan-probe/1"


def send(
    probes: Sequence[Mapping[str, Any]],
    cpus: Sequence[int],
    binary: Path,
    tell: Callable[[str], None],
    seen: Seen | None = None,
) -> dict[str, Any]:
    """The answer; RuntimeError with one line when nothing could be sent. The probes' threads run on these CPUs.

    `tell` gets a line of each probe that begins. `seen` is called after each probe, before the next one begins.
    """
    results: list[dict[str, Any]] = []
    with subprocess.Popen(
        [binary, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        last = "no answer"
        try:
            for number, probe in enumerate(probes, 1):
                # One at a time: what is made of its result meanwhile takes no CPU from the next.
                child.stdin.write(json.dumps({"cpus": list(cpus), "probes": [probe]}) + "\n")
                child.stdin.flush()
                for line in child.stderr:
                    event = _event(line)
                    if event is None:
                        last = line.strip() or last
                    elif event["event"] == "finished":
                        break
                    else:
                        tell(begins(event["probe"], number, len(probes), event["longest_ns"]))
                answer = child.stdout.readline()
                if not answer.endswith("\n"):
                    break
                results += json.loads(answer)["results"]
                if seen is not None:
                    seen(results)
            child.stdin.close()
        except BrokenPipeError:  # it has said why
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()  # what it did not take would be tried again
        except BaseException:
            child.kill()
            raise
        last = child.stderr.read().strip() or last
    if child.returncode != 0 or len(results) < len(probes):
        raise RuntimeError(f"ewan-node probe: {last}")
    return {"format": ANSWER_FORMAT, "results": results}


def begins(probe: str, number: int, of: int, longest_ns: int) -> str:
    """The line that says which probe begins; numbers from 1."""
    return f"probe {number} of {of}: {probe} (up to {longest_ns / NS_PER_SECOND:.1f} s)"


def _event(line: str) -> dict[str, Any] | None:
    """None: an error message."""
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return event
