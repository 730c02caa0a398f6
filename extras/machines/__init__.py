"""Labs over several machines: which machines, what each of them gets of a plan, and how they are reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ewan.extra import Extra


def _runtime() -> Callable[..., Any]:
    from ewan.extras.machines.runtime import runtime

    return runtime


EXTRA = Extra(machines={"ssh": _runtime})
