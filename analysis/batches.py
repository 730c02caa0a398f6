"""Small tables of several runs, read at once, and their derived tables, computed for all runs together.

In: runs. Out: the derived tables of each run, the same as for the run by itself. A run of a second leaves tables of a
few kilobytes, of which opening, and each step of a query, takes longer than the rows: for fifty runs together it takes
as long as for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import polars as pl

from ewan.analysis import flows, network, payload
from ewan.analysis.arrivals import FLOW
from ewan.analysis.load import Link, RunResults
from ewan.analysis.network import LinkSeries
from ewan.analysis.payload import Key
from ewan.analysis.queries import collected, groups
from ewan.analysis.rundata import DerivedTables
from ewan.labs.record.tables import TABLES

MOST_TOGETHER = 64
"""Runs."""
SMALL = 256 << 10
"""Bytes of a table's file; a larger one is read by itself."""
NEEDED = ("flows", "goodput", "series", "links")
"""Tables that what is ready is derived of."""
_APART = 1 << 40
"""Between the numbers of flows of two runs: more than any run has."""
_RUN, _PATH = "run of several", "path of a file"

Value = TypeVar("Value")


def ready(runs: Sequence[RunResults]) -> Iterator[tuple[RunResults, DerivedTables | None]]:
    """Each run, in order, with its small tables read and its derived tables; None: the run derives all by itself.
    LoadError for a table that is damaged."""
    for first in range(0, len(runs), MOST_TOGETHER):
        several = runs[first : first + MOST_TOGETHER]
        found = _of_several(several) if len(several) > 1 else {}
        for run in several:
            yield run, found.get(run.number)


def _of_several(runs: Sequence[RunResults]) -> Mapping[int, DerivedTables]:
    read = {name: frame for name in TABLES if (frame := _read(runs, name)) is not None}
    if any(name not in read for name in NEEDED):
        return {}
    there = [number for number, run in enumerate(runs) if all(name in run.kept for name in NEEDED)]
    load = flows.loaded(read["flows"])
    # Flows of different runs are different ones, and so are links.
    own = {name: _apart(read[name]) for name in ("flows", "goodput", "series")}
    samples = own["series"].join(_apart(load).select(FLOW), on=FLOW, how="semi")
    rtts = _split(collected(samples.filter(pl.col("srtt_ns") > 0).select("srtt_ns", _RUN)))
    goodput = collected(own["goodput"])
    bins, came = _by_run(payload.bins(goodput)), _by_run(payload.came(collected(own["flows"]), goodput))
    links = read["links"].with_columns(link=pl.concat_str(pl.col(_RUN).cast(pl.String), "link", separator="\0"))
    watched = _of_links(network.watched(links))
    loads = _split(load)
    return {
        runs[number].number: DerivedTables(
            load=loads.get(number, runs[number].table("flows").clear()),
            bins=bins.get(number, {}),
            came=came.get(number, {}),
            watched=watched.get(number, {}),
            rtts_ns=rtts[number]["srtt_ns"].to_list() if number in rtts else [],
        )
        for number in there
    }


def _read(runs: Sequence[RunResults], name: str) -> pl.DataFrame | None:
    """A table of all runs that have a small one, with the run's place among them in `_RUN`; each has its own in `kept`.
    None where fewer than two have one, and where these do not fit each other, as those of several versions."""
    small = {number: run for number, run in enumerate(runs) if 0 < run.size(name) <= SMALL}
    if len(small) < 2:
        return None
    for run in small.values():
        run.check(name)
    paths = {str(run.path(name)): number for number, run in small.items()}
    try:
        read = pl.scan_parquet(list(paths), include_file_paths=_PATH).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # reading the file by itself gives the error
        return None
    of = read[_PATH].replace_strict(paths, return_dtype=pl.Int64).alias(_RUN)
    plain = read[[column for column in read.columns if column != _PATH]]
    own = dict.fromkeys(small, plain.clear()) | {number: plain[rows] for number, rows in _rows(of)}
    for number, frame in own.items():
        runs[number].kept[name] = frame
    return plain.insert_column(0, of)


def _apart(frame: pl.DataFrame) -> pl.LazyFrame:
    return frame.lazy().with_columns(pl.col("flow") + pl.col(_RUN) * _APART)


def _split(frame: pl.DataFrame) -> dict[int, pl.DataFrame]:
    """The rows of each run."""
    return {number: frame[own] for number, own in _rows(frame.drop_in_place(_RUN))}


def _rows(of: pl.Series) -> Iterator[tuple[int, slice]]:
    """The number and the rows of each run. The rows of a run are contiguous."""
    numbers = of.to_numpy()
    return ((int(numbers[own.start]), own) for own in groups(numbers))


def _by_run(found: Mapping[Key, Value]) -> dict[int, dict[Key, Value]]:
    result: dict[int, dict[Key, Value]] = {}
    for (flow, part), value in found.items():
        number, own = divmod(flow, _APART)
        result.setdefault(number, {})[own, part] = value
    return result


def _of_links(found: Mapping[Link, LinkSeries]) -> dict[int, dict[Link, LinkSeries]]:
    result: dict[int, dict[Link, LinkSeries]] = {}
    for (words, direction), value in found.items():
        number, _, link = words.partition("\0")
        result.setdefault(int(number), {})[link, direction] = value
    return result
