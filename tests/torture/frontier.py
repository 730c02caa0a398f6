"""Random labs near the frontier of this host's envelope: what it said before is what the verification says after.

Each trial is a lab of parallel links whose packets per second together are a third to three times what the host was
measured to carry. It fails where the two verdicts differ; of thirty, three may (the host is another one each minute).
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from ewan.calibration import LiveLab, envelope, verify_lab
from ewan.calibration.envelope import LinkDemand
from ewan.calibration.host import calibrations, measurement
from ewan.calibration.thorough import TOGETHER
from ewan.labs import host
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.spec import from_template

TIER = "live"
QUICK = 0
LONG = 30
LEAST, MOST = 1 / 3, 3.0
LINKS = (2, 3, 4, 6, 8)


def trial(seed: int, place: Path) -> None:
    source = random.Random(seed)
    context = Context.of(os.environ)
    known = measurement.of_this_host(context)
    links = source.choice(LINKS)
    # Both directions of each link are loaded at once.
    fastest = envelope.fastest(known.links, LinkDemand(1, 0, 1500, 2 * links)) * (1 + envelope.MARGIN)
    rate = round(fastest * LEAST * (MOST / LEAST) ** source.random())
    before = envelope.predict(known.links, LinkDemand(rate, 0, 1500, 2 * links))
    words = {
        "arms": str(links),
        "name": f"frontier{os.getpid()}",
        "rate": f"{rate}bit/s",
        "rtt": "8ms",
        "buffer": "1MB",
    }
    plan = compile(from_template("star", words), host.facts())
    runtime = context.live("netns")
    runtime.up(plan)
    try:
        lab = LiveLab(runtime, context.binary)
        certificate = verify_lab(plan, lab, thorough=True, instrument=calibrations.instrument_of(known))
    finally:
        runtime.down(plan.lab)
    rows = [row for row in certificate.rows if row.quantity.endswith(TOGETHER)]
    wrong = [row for row in rows if row.verdict in ("outside", "not measured")]
    inside = not wrong
    first = f"{wrong[0].link} {wrong[0].quantity}: {wrong[0].verdict}: {wrong[0].note}" if wrong else "all inside"
    said = f"{links} links of {rate / 1e6:.0f} Mbit/s: before: {before.why}; after: {first}"
    print(f"{'agrees' if inside == before.inside else 'differs'}: {said}", flush=True)
    assert inside == before.inside, said
