"""Real answers of probes, links and timers (fixtures), as the tests that judge or draw them want them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ewan.calibration import expect, spinner
from ewan.calibration.compare import compare
from ewan.calibration.host.timers import Timers
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import plan_probes
from ewan.calibration.tests.answers import stats_of
from ewan.labs.base import codec, documents
from ewan.labs.plan import digest, from_json
from ewan.labs.record import Certificate, MachineFacts
from ewan.labs.runtime.probe_documents import ProbeAnswer

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def read(name: str) -> Any:
    return orjson.loads((FIXTURES / name).read_bytes())


def captured_certificate() -> Certificate:
    """Of a dumbbell: 100 Mbit/s, 50 ms, on a machine whose CPUs others used, too."""
    lab = from_json((FIXTURES / "dumbbell.plan.json").read_bytes())
    expected = expect.expectations(lab)
    stats = read("dumbbell.stats.json")
    answer = documents.read(ProbeAnswer, FIXTURES / "dumbbell.answer.json")
    rows = compare(
        expected,
        plan_probes(expected, lab.lab, LiveProbes()),
        answer,
        spinner.facts([stats_of(stats["before"])], [stats_of(stats["after"])]),
    )
    host = MachineFacts("6.18", "x86_64", "a CPU", 2, 4 << 30, "tsc", True, {"python": "3.11"})
    return Certificate(
        plan_sha256=digest(lab),
        lab=lab.lab,
        time="2026-01-01T00:00:00+00:00",
        host=host,
        tolerances={},
        rows=rows,
        probes=codec.data_of(answer),
        spinners={"0": stats["after"]},
        elapsed_ns=11_200_000_000,
    )


def captured_timers() -> Timers:
    """Of the same kind of machine."""
    return codec.decode(Timers, (FIXTURES / "timers.json").read_bytes(), "timers")
