"""Measures the time of a star of 10,000 hosts from template to plan.json: `python -m tests.bench.compile`.

The process's start and its imports count: the time is that of a fresh interpreter, the best of five;
`cpu_s` is the least CPU time, which says what a busy machine has added to it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

PROGRAM = """
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import to_json
from ewan.labs.spec import from_template
plan = compile(from_template("star", {"arms": "%d"}), HostFacts((0, 1), ("192.168.1.0/24",)))
print(len(plan.nodes), len(to_json(plan)))
"""


def measure(arms: int, runs: int = 5) -> dict[str, float]:
    """Seconds, nodes and bytes."""
    taken, used = [], []
    nodes = size = 0
    for _ in range(runs):
        begin, before = time.perf_counter(), _cpu()
        done = subprocess.run([sys.executable, "-P", "-c", PROGRAM % arms], capture_output=True, check=True, text=True)
        taken.append(time.perf_counter() - begin)
        used.append(_cpu() - before)
        nodes, size = (int(word) for word in done.stdout.split())
    return {
        "arms": arms,
        "nodes": nodes,
        "plan_bytes": size,
        "best_s": min(taken),
        "worst_s": max(taken),
        "cpu_s": min(used),
    }


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    for count in (100, 5_000, 10_000):
        print(json.dumps(measure(count)))
