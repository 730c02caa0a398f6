"""A certificate for one plan in either clock, without a word to the user: what the engine of experiments asks for.

In: a plan (live: its lab is up), a directory for what the probes leave. Out: the certificate.
"""

from __future__ import annotations

import threading
from pathlib import Path

from ewan.calibration.certify import BatchLab, LiveLab, verify_lab
from ewan.calibration.host import calibrations
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate


def certify(context: Context, plan: Plan, directory: Path, virtual: bool, stop: threading.Event) -> Certificate:
    """RuntimeError and LabError with one line when the probes cannot run, or were stopped."""
    if virtual:
        return verify_lab(plan, BatchLab(context.virtual(), directory, stop))
    return verify_lab(plan, LiveLab(context.live(), context.binary), instrument=calibrations.instrument(context))
