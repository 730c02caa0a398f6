"""Metrics of each run, kept beside an experiment of many runs, so that the tables of each are read once.

In: runs with their checksums, the quantities that are asked for. Out: `RunMetrics`, by the runs' numbers; and the file
`.measured` in the experiment's directory, which is no result: removing it costs only time, and archives are without it.
Its entry for a run is valid while experiment.json vouches for the same bytes of all files of the run, the code that
computes is the same, and the file is whole; else the run is measured again. So an experiment that grows, by rounds or
while it runs, is read once too."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import orjson
from msgspec.structs import asdict

from ewan.analysis import batches, disturbance_overlap, load, metrics, side_by_side, uncounted_traffic
from ewan.analysis.rundata import DerivedTables, RunData
from ewan.labs.base import codec, writing
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import read_bytes
from ewan.labs.record import host_drops
from ewan.labs.record.experiment import checksum
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.quantities import Quantity, Selection, metric_of
from ewan.labs.record.summary import LinkDirection, LinkUse, Number, RunDisturbances, UnexplainedShare
from ewan.labs.record.tables import TABLES

FILE = ".measured"
FORMAT = "ewan-measured/1"
FEWEST_KEPT = 200
"""Measured runs of an experiment beside which the file is written: fewer are measured as soon as it is read."""
MOST_BYTES = 2 << 30
LOAD = ""
"""The words of what every run is asked for: all metrics of its load."""
STEP_METRICS = ("aggregate goodput", "share", "mean completion time")
"""Metrics of each step, where a run has several steps with flows."""
_SOURCES = ("*.py", "../labs/record/*.py", "../labs/base/units/*.py", "../requirements.lock")

Values = dict[str, Number]


class RunMetrics(Struct):
    """One run. `asked`: values by quantity, by the words that asked for them."""

    asked: dict[str, Values]
    beyond: tuple[str, ...]
    """Quantities that show more than the links carry."""
    steps: dict[str, Values]
    bottleneck: LinkDirection | None
    links: tuple[LinkUse, ...]
    disturbed: RunDisturbances | None
    """None: its links were not watched."""
    rows: dict[str, int]
    """The number of rows of each of its tables, by name; absent tables are left out."""
    dropped: host_drops.Counts
    """By hosts and routers."""
    uncounted: UnexplainedShare | None = None
    """None: all traffic belongs to flows (analysis/uncounted_traffic.py)."""

    def values(self, also: Iterable[Quantity] = ()) -> Values:
        """The metrics of the load, then the quantities of `also`."""
        found = dict(self.asked[LOAD])
        for quantity in also:
            found |= self.asked[str(quantity)]
        return found

    def knows(self, also: Iterable[Quantity]) -> bool:
        """Return whether all quantities of `also` were computed."""
        return all(str(quantity) in self.asked for quantity in also)

    @property
    def whole(self) -> bool:
        """Return whether JSON can hold all values: it has no word for a number that is not finite."""
        parts = [*self.asked.values(), *self.steps.values(), *map(asdict, self.links)]
        return all(math.isfinite(each) for part in parts for each in part.values() if isinstance(each, float))


class _KeptRun(Struct):
    """A line of the file."""

    of: str
    run: RunMetrics


def of_runs(experiment: load.ExperimentResults, also: Sequence[Quantity] = ()) -> dict[int, RunMetrics]:
    """Each run that was measured, by its number, in order; LoadError where a table is damaged."""
    runs = [run for run in experiment.runs if run.measured]
    keys = {run.number: key(run) for run in runs} if len(runs) >= FEWEST_KEPT else {}
    kept = _read(experiment.directory) if keys else {}
    known = {number: found for number, own in keys.items() if (found := _of_line(kept.get(own))) is not None}
    wanting = [
        (number, before)
        for number, before in ((run.number, known.get(run.number)) for run in runs)
        if before is None or not before.knows(also)
    ]
    new = _of_all(experiment, also, wanting)
    if keys and new:
        every = ((own, new.get(number)) for number, own in keys.items())
        lines = (kept.get(own) if found is None else _line(own, found) for own, found in every)
        _write(experiment.directory, filter(None, lines))
    return {run.number: new.get(run.number) or known[run.number] for run in runs}


Wanting = Sequence[tuple[int, RunMetrics | None]]
"""Numbers of runs that are to be measured, with what is known of them."""


def _of_all(experiment: load.ExperimentResults, also: Sequence[Quantity], wanting: Wanting) -> dict[int, RunMetrics]:
    """Measure many runs in several processes."""
    if not side_by_side.shared(len(wanting)):
        return _of_several(experiment, also, wanting)
    found: dict[int, RunMetrics] = {}
    parts = side_by_side.shares(wanting, len(wanting))
    for part in side_by_side.each(partial(_of_part, experiment.directory, also), parts, len(wanting)):
        found |= part
    return found


def _of_part(directory: Path, also: Sequence[Quantity], wanting: Wanting) -> dict[int, RunMetrics]:
    return _of_several(load.experiment_once(directory), also, wanting)


def _of_several(
    experiment: load.ExperimentResults, also: Sequence[Quantity], wanting: Wanting
) -> dict[int, RunMetrics]:
    before = dict(wanting)
    runs = [experiment.by_number[number] for number in before]
    return {run.number: of_run(run, also, before[run.number], ready) for run, ready in batches.ready(runs)}


def of_run(
    run: load.RunResults,
    also: Sequence[Quantity] = (),
    known: RunMetrics | None = None,
    ready: DerivedTables | None = None,
) -> RunMetrics:
    """The metrics of one run, its links, the bottleneck among them, and the disturbances of a live run. `known`:
    metrics of the run that were computed before."""
    data = RunData.read(run, ready)
    wanted = {} if known else {LOAD: [Quantity(metric) for metric in METRICS.values()]}
    wanted |= {str(quantity): [quantity] for quantity in also if known is None or str(quantity) not in known.asked}
    seen = metrics.views(data)
    asked = {words: dict(metrics.computed(quantities, data, seen)) for words, quantities in wanted.items()}
    beyond = [name for values in asked.values() for name in metrics.beyond(data, values)]
    if known is not None:
        run.forget()
        return codec.replace(known, asked=known.asked | asked, beyond=tuple(dict.fromkeys([*known.beyond, *beyond])))
    at = data.bottleneck
    found = RunMetrics(
        asked,
        tuple(dict.fromkeys(beyond)),
        steps(data),
        None if at is None else LinkDirection(*at),
        tuple(data.uses),
        disturbance_overlap.of_run(run, data.ways),
        {name: run.table(name).height for name in TABLES if run.has(name)},
        host_drops.counts(run.table(host_drops.TABLE)) if run.has(host_drops.TABLE) else {},
        uncounted_traffic.of_run(data),
    )
    run.forget()
    return found


def steps(data: RunData) -> dict[str, Values]:
    """Metrics of each step, where a run has more than one with flows."""
    there = [step for step in dict.fromkeys(data.all_flows["step"].to_list()) if step is not None]
    if len(there) < 2:
        return {}
    wanted = [(step, Quantity(METRICS[name], Selection("step", step))) for step in there for name in STEP_METRICS]
    found = dict(metrics.computed([quantity for _, quantity in wanted], data))
    return {
        step: {
            quantity.metric.name: found[str(quantity)]
            for own, quantity in wanted
            if own == step and str(quantity) in found
        }
        for step in there
    }


def key(run: load.RunResults) -> str:
    """SHA-256 of the names and checksums of all files of a run that the experiment vouches for."""
    text = "".join(f"{name}\0{run.files[name]}\n" for name in sorted(run.own))
    return hashlib.sha256(text.encode()).hexdigest()


def rows(experiment: load.ExperimentResults) -> Mapping[int, Mapping[str, int]]:
    """The numbers of rows of the tables of runs, as far as they are known without reading one: by the runs' numbers."""
    kept = _read(experiment.directory)
    found = {run.number: _of_line(kept.get(key(run))) for run in experiment.runs if run.measured} if kept else {}
    return {number: each.rows for number, each in found.items() if each is not None}


def _line(own: str, found: RunMetrics) -> bytes | None:
    """The line of a run in the file, without metrics of extras, whose code may be another one the next time; None for
    values that JSON cannot hold."""
    if not found.whole:
        return None
    asked = {words: values for words, values in found.asked.items() if words == LOAD or _is_ours(words)}
    return codec.compact(_KeptRun(own, codec.replace(found, asked=asked)))


def _is_ours(words: str) -> bool:
    metric = metric_of(words)
    return metric is not None and metric.name in METRICS


def _of_line(line: bytes | None) -> RunMetrics | None:
    return None if line is None else codec.decode(_KeptRun, line, "").run


def _read(directory: Path) -> dict[str, bytes]:
    """The lines of the file, by the runs' keys; none where it is not there, not whole, or of other code."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        head, _, text = read_bytes(directory / FILE, MOST_BYTES).partition(b"\n")
        if orjson.loads(head) == _head(text):
            begin, end = len(b'{"of":"'), len(b'{"of":"') + hashlib.sha256().digest_size * 2
            return {line[begin:end].decode(): line for line in text.splitlines()}
    return {}


def _write(directory: Path, lines: Iterable[bytes]) -> None:
    """Write the file in one step; where it cannot be written, runs are measured again the next time."""
    text = b"".join(line + b"\n" for line in lines)
    with contextlib.suppress(OSError):
        writing.write(directory / FILE, orjson.dumps(_head(text)) + b"\n" + text)


def _head(text: bytes) -> dict[str, str]:
    return {"format": FORMAT, "code": _code(), "sha256": hashlib.sha256(text).hexdigest()}


@cache
def _code() -> str:
    """SHA-256 of the modules that compute, and of the versions of their libraries."""
    place = Path(__file__).resolve().parent
    found = sorted(path.resolve() for pattern in _SOURCES for path in place.glob(pattern))
    return hashlib.sha256("".join(f"{path.name} {checksum(path)}\n" for path in found).encode()).hexdigest()
