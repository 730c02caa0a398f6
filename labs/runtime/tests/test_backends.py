"""Links of the kernel in the live clock, on whatever kernel this is: they work, or are refused and leave nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import to_json
from ewan.labs.runtime.tests.lab import BINARY, own_state, run, traces
from ewan.labs.spec import from_template

pytestmark = pytest.mark.live

LAB = f"kb{os.getpid()}"


def kernel_has(kind: str) -> bool:
    """Can a qdisc be made? Tried in a namespace of its own."""
    script = f"ip link add name d type veth peer name e && tc qdisc add dev d root {kind}"
    return subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True).returncode == 0


@pytest.mark.parametrize("backend", ["kernel", "tbf"])
def test_what_the_kernel_lacks_is_one_line_and_leaves_nothing(tmp_path: Path, backend: str) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    spec = from_template("dumbbell", {"name": LAB, "emulator": backend})
    file = tmp_path / "plan.json"
    file.write_bytes(to_json(compile(spec, HostFacts(cpus, ()))))
    lacks_netem = not kernel_has("netem delay 1ms")
    with own_state("backends") as root:
        made = run(str(BINARY), "apply", "--plan", str(file), "--state", str(root / LAB))
        if made.returncode == 0:
            assert not lacks_netem
            return
        words = made.stderr.decode().strip()
        assert made.returncode == 2 and "\n" not in words
        assert words.startswith("link core forward: ") and words.endswith("write emulator: user"), words
        if lacks_netem:
            assert "this kernel lacks netem (CONFIG_NET_SCH_NETEM)" in words
        assert traces(LAB, root) == []
