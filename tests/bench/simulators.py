"""Scenarios in the virtual clock beside what `ewan results export` makes of them for ns-2 and ns-3.

In: a context that can run the virtual kernel; ns-2 and ns-3 of the distribution's packages. Out: for each case the
completion time of its files or the goodput of its flows in all three, and a table of them for `bench.py`. The three
have their own TCP, so that equal numbers are no matter of course: the bound says how far apart they may be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ewan.experiments.scenarios import files
from ewan.generator import records
from ewan.generator import scenario as scenarios
from ewan.labs import host
from ewan.labs.base import writing
from ewan.labs.base.units.shown import percent, written
from ewan.labs.compile import compile as compile_spec
from ewan.labs.context import Context
from ewan.labs.record import tables as records_of
from ewan.labs.runtime.base import LabError
from tests.bench import run_simulators as simulators
from tests.bench.run_simulators import FlowOutcome

BOUND = 0.03
"""The most by which a simulator's number may differ from ours, as a share of ours."""

_ONE = "lab: {topology: dumbbell, rtt: 40ms, wan: {rate: 50Mbit/s, buffer: 1BDP}, access: {rate: 1Gbit/s}}\n"
CASES = {
    "one file": _ONE
    + """
parameters: {congestion: cubic}
sweep: {congestion: [reno, cubic, bic, htcp, highspeed, scalable]}
steps: [{name: file, from: left1, to: right1, congestion: "${congestion}", bulk: 60MB}]
""",
    "four flows, 1 s apart": """
lab: {topology: {dumbbell: {pairs: 4}}, rtt: 20ms, wan: {rate: 40Mbit/s, buffer: 1BDP}, access: {rate: 100Mbit/s}}
steps: [{name: load, from: "left[1-4]", to: "right[1-4]", offset: 1s, for: 20s, bulk: }]
""",
    "parking lot": """
lab: {topology: {parking-lot: {hops: 3}}, rtt: 60ms, wan: {rate: 20Mbit/s, buffer: 1BDP}}
steps:
  - {name: far, from: left1, to: right1, for: 30s, bulk: }
  - {name: near, role: cross, from: "in[1-3]-1", to: "out[1-3]-1", for: 30s, bulk: }
""",
    "star, two into one": """
lab: {topology: {star: {arms: 3}}, rtt: 20ms, wan: {rate: 20Mbit/s, buffer: 2BDP}}
steps: [{name: load, from: "host[1-2]", to: host3, for: 20s, congestion: reno, bulk: }]
""",
    "loss of 0.1 %": """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 100Mbit/s, loss: 0.1%}}
seeds: 4
steps: [{name: load, from: left1, to: right1, for: 60s, congestion: reno, bulk: }]
""",
    "UDP, 12 into 10 Mbit/s": """
lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s, buffer: 50pkt}}
steps: [{name: load, from: left1, to: right1, for: 10s, udp: {rate: 12Mbit/s, size: 1000B}}]
""",
}
QUICK = ("one file", "UDP, 12 into 10 Mbit/s")
"""Of these the first point alone."""


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row a case and point; `say` is told which is at work. LabError where a simulator is not there."""
    if needed := simulators.missing():
        raise LabError(f"the simulators are not there (Debian: apt install {needed})")
    rows = []
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch:
        for name in QUICK if quick else CASES:
            for number, row in enumerate(_case(context, name, Path(scratch), say)):
                rows.append(row)
                if quick and number == 0:
                    break
    return rows


def _case(context: Context, name: str, scratch: Path, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each point of a case, in all three."""
    place = scratch / f"{list(CASES).index(name)}"
    place.mkdir()
    file = place / "case.scenario.yaml"
    file.write_text(CASES[name])
    runs = scenarios.load(file).runs()
    sources, scripts = (
        writing.write_all(files(kind, file, place / f"case.{end}")) for kind, end in (("ns3", "cc"), ("ns2", "tcl"))
    )
    for number, (source, script) in enumerate(zip(sources, scripts, strict=True)):
        of_point = runs[number * runs.seeds : (number + 1) * runs.seeds]
        shown = " ".join([name, *(str(of_point[0].parameters[key]) for key in runs.varying)])
        found: dict[str, list[float]] = {"virtual": [], "ns3": [], "ns2": []}
        binary = simulators.compiled(source)
        for run in of_point:
            say(f"{shown}, seed {run.seed}")
            plan = compile_spec(run.spec, host.virtual_facts())
            schedule = run.schedule(plan, "virtual")
            directory = place / f"run-{run.number}"
            context.virtual().run(plan, schedule.program, directory)
            error = records.collect(directory, schedule.document)
            if error is not None:
                raise LabError(f"{shown}: {error}")
            ours = [
                FlowOutcome(row["flow"], row["received_bytes"], row["completion_ns"], row["goodput_bps"], None)
                for row in records_of.read(directory, "flows").iter_rows(named=True)
            ]
            complete = all(flow.completion_ns is not None for flow in ours)
            found["virtual"].append(_of(ours, complete))
            found["ns3"].append(_of(simulators.ns3(binary, run.seed), complete))
            found["ns2"].append(_of(simulators.ns2(script, run.seed), complete))
        means = {key: sum(values) / len(values) for key, values in found.items()}
        yield {"case": shown, "runs": runs.seeds, "unit": "ns" if complete else "bit/s", **means}


def _of(flows: Sequence[FlowOutcome], complete: bool) -> float:
    """The mean completion time, or the sum of all goodputs."""
    if complete:
        return sum(flow.completion_ns or 0 for flow in flows) / len(flows)
    return sum(flow.goodput_bps for flow in flows)


def tables(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, columns, rows."""
    drawn = []
    for row in rows:
        shares = [row[key] / row["virtual"] - 1 for key in ("ns3", "ns2")]
        beside = [
            cell
            for key, share in zip(("ns3", "ns2"), shares, strict=True)
            for cell in (written(row[key], row["unit"]), percent(share, 2))
        ]
        what = "completion time" if row["unit"] == "ns" else "goodput"
        beyond = [key for key, share in zip(("ns-3", "ns-2"), shares, strict=True) if abs(share) > BOUND]
        drawn.append([row["case"], what, written(row["virtual"], row["unit"]), *beside, ", ".join(beyond)])
    columns = ["case", "what", "virtual", "ns-3", "difference", "ns-2", "difference", f"beyond {BOUND:.0%}"]
    return [("Exports beside the virtual clock", columns, drawn)]
