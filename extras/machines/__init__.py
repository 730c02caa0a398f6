"""Labs over several machines: their machines, the share of each in a plan, and the connections to them.

`placement.py` places nodes, and `shares.py` makes each machine's share, a plan with `tunnels`; both are pure. `ssh.py`
reaches machines; `deployment.py` sends the node binary, measures the tunnels (emulator/node/src/stretch) and makes the
shares with the commands that make a lab here. The link's emulator subtracts the tunnel's delay from each delay, so that
all other parts use the whole delay. A run's program is split by node (`programs.py`, pure); each machine runs its part
in step with the others (`joint_runs.py`), a flow between two machines as two halves. `joint_results.py` and
`flow_records.py` make one run's results of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ewan.extra import Extra


def _runtime() -> Callable[..., Any]:
    from ewan.extras.machines.runtime import runtime

    return runtime


EXTRA = Extra(machines={"ssh": _runtime})
