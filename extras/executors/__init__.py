"""Runs of the virtual clock on the cores of other machines, by Dask: Slurm, OAR, PBS, SSH, this machine, or a scheduler
of Dask that is there.

In: a file that says whose cores, and units of runs (`experiments/engine/unit.py`). Out: the outcome of each.
`reading.py` reads the file, `dask_workers.py` has the workers started, `remote.py` is what they do, `work_queue.py`
gives them work. Dask comes with `make setup-cluster`, and is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ewan.extra import Extra


def _dask() -> Callable[..., Any]:
    from ewan.extras.executors.cluster_executor import executor

    return executor


EXTRA = Extra(executors={"dask": _dask})
