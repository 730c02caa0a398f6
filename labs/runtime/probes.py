"""Sends probes through a lab that is up, by one process that has its sockets in all nodes: `ewan-node probe`.

In: probes as generator/src/probe/request.rs has them. Out: its answer, {"format", "results"}: of each probe the result
or {"kind": "failed", "error"}. In a lab over several machines `labs.cluster.probing` does the same.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labs.units import NS_PER_SECOND

ANSWER_FORMAT = "ewan-probe/1"


def send(
    probes: Sequence[Mapping[str, Any]], cpus: Sequence[int], binary: Path, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The answer; RuntimeError with one line when nothing could be sent. The probes' threads run on these CPUs.

    `tell` gets a line of each probe that begins.
    """
    request = json.dumps({"cpus": list(cpus), "probes": list(probes)})
    with subprocess.Popen(
        [binary, "probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        answer: list[str] = []
        reader = threading.Thread(target=lambda out: answer.append(out.read()), args=(child.stdout,), daemon=True)
        reader.start()
        last = "no answer"
        try:
            child.stdin.write(request)
            child.stdin.close()
            for line in child.stderr:
                last = _show(line, tell) or last
        except BrokenPipeError:
            last = child.stderr.read().strip() or last
        except BaseException:
            child.kill()
            raise
        reader.join()
    if child.returncode != 0:
        raise RuntimeError(f"ewan-node probe: {last}")
    result: dict[str, Any] = json.loads(answer[0])
    return result


def begins(probe: str, number: int, of: int, longest_ns: int) -> str:
    """The line that says which probe begins; numbers from 1."""
    return f"probe {number} of {of}: {probe} (up to {longest_ns / NS_PER_SECOND:.1f} s)"


def _show(line: str, tell: Callable[[str], None]) -> str | None:
    """Reports a probe that begins; returns a line that is no event: an error message."""
    try:
        event = json.loads(line)
    except ValueError:
        return line.strip()
    if event["event"] == "started":
        tell(begins(event["probe"], event["index"] + 1, event["of"], event["longest_ns"]))
    return None
