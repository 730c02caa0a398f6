"""All of a host's measurements, one after the other, within the time that a profile allows.

In: the settings of this process, a profile. Out: a `HostCalibration`, and the same kept in the user's cache. Where none
is kept, commands that need one make a quick one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ewan.calibration.host import accuracy, calibrations, links, paths, processors, timers, virtual
from ewan.calibration.host.calibrations import HostCalibration, Profile
from ewan.labs.context import Context
from ewan.labs.record.demand import Demand
from ewan.labs.runtime import kernel

LINKS = {"quick": links.QUICK, "default": links.DEFAULT, "full": links.FULL}
VIRTUAL_S = {"quick": 1, "default": 4, "full": 30}
"""For the virtual clock, in seconds; one round of its cases at least."""
WORDS = {"quick": "at most 15 s", "default": "at most a minute", "full": "at most ten minutes"}


def measure(
    context: Context,
    profile: Profile,
    progress: Callable[[str], None] = lambda text: None,
    nics: Sequence[str] = (),
) -> HostCalibration:
    """Measures this host, as root; LabError in one line where labs cannot be made here. Whatever ends it, no lab of its
    is left."""
    begun = time.monotonic_ns()
    known = calibrations.circumstances(context.binary)
    clocks = timers.measure(context.binary, profile, progress)
    cpus = processors.measure(progress, hypervisor=clocks.hypervisor)
    bare = paths.measure(context, profile, progress, nics)
    runtime = context.live("netns")
    exact = None
    if profile != "quick":
        with links.bench(runtime, "user", 1) as made:
            exact = accuracy.measure(made, progress)
    frontiers, absent = links.measure(runtime, LINKS[profile], progress)
    cost = None
    if kernel.built() is not None:
        cost = virtual.measure(context, VIRTUAL_S[profile], progress)
    return HostCalibration(
        fingerprint=calibrations.fingerprint(known),
        circumstances=known,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        profile=profile,
        elapsed_ns=time.monotonic_ns() - begun,
        timers=clocks,
        processors=cpus,
        paths=bare,
        links=frontiers,
        absent=absent,
        accuracy=exact,
        virtual=cost,
    )


def of_this_host(context: Context) -> HostCalibration:
    """The kept measurement of this host, or else a quick one, which is announced and kept; as root."""
    found = calibrations.load(context)
    if found is not None:
        return found
    what = f"measuring what this host can be trusted with, once ({WORDS['quick']}; ewan measure host measures more)"
    with context.reporter.progress(what) as status:
        found = measure(context, "quick", lambda text: status.update(f"{what}: {text}"))
    calibrations.save(context, found)
    return found


def wall_of(context: Context) -> Callable[[Demand], tuple[int, int]]:
    """For the engine: wall time of a run of the virtual clock on this host, and its standard uncertainty, in ns.

    By what was measured of this host; else by a reference, held against two of the smallest runs.
    """
    found = calibrations.load(context)
    cost = found.virtual if found is not None and found.virtual is not None else virtual.cost_of_this_host(context)
    return lambda demand: virtual.wall_ns(cost, demand)
