"""All of a host's measurements, one after the other, within the time that a profile allows.

In: what this process was told, a profile. Out: a `HostCalibration`, and the same kept in the user's cache. Where none
is kept, commands that need one make a quick one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from calibration.host import accuracy, kept, links
from calibration.host.kept import HostCalibration, Profile
from calibration.uncertainty import Instrument
from labs.context import Context

LINKS = {"quick": links.QUICK, "default": links.DEFAULT, "full": links.FULL}
WORDS = {"quick": "at most 15 s", "default": "at most a minute", "full": "at most ten minutes"}


def measure(context: Context, profile: Profile, progress: Callable[[str], None] = lambda text: None) -> HostCalibration:
    """Measures this host, as root; LabError in one line where labs cannot be made here. Whatever ends it, no lab of its
    is left."""
    begun = time.monotonic_ns()
    known = kept.circumstances(context.binary)
    runtime = context.live("netns")
    exact = None
    if profile != "quick":
        with links.bench(runtime, context.binary, "user", 1) as made:
            exact = accuracy.measure(made, progress)
    frontiers, absent = links.measure(runtime, context.binary, LINKS[profile], progress)
    return HostCalibration(
        fingerprint=kept.fingerprint(known),
        circumstances=known,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        profile=profile,
        elapsed_ns=time.monotonic_ns() - begun,
        links=frontiers,
        absent=absent,
        accuracy=exact,
    )


def of_this_host(context: Context) -> HostCalibration:
    """The kept measurement of this host, or else a quick one, which is said and kept; as root."""
    found = kept.load(context)
    if found is not None:
        return found
    what = f"measuring what this host can be trusted with, once ({WORDS['quick']}; ewan calibrate measures more)"
    with context.reporter.progress(what) as status:
        found = measure(context, "quick", lambda text: status.update(f"{what}: {text}"))
    kept.save(context, found)
    return found


def instrument(context: Context) -> Instrument:
    """What probes add on this host: as it was measured, else as it is assumed."""
    found = kept.load(context)
    if found is None:
        return Instrument()
    return Instrument(source=f"ewan calibrate, {found.time}")
