"""A run of which only the bytes of its files are there."""

from __future__ import annotations

from pathlib import Path

from ewan.analysis.figures.windows import MOST_SAMPLES
from ewan.analysis.one_run import SingleRun
from ewan.analysis.tests.synthetic import flow, frame
from ewan.generator.tests import schedules
from ewan.labs.record import tables
from ewan.labs.record.schedule import unnamed_to_json


def test_every_sample_of_a_flow_is_told_also_where_a_figure_shows_fewer(tmp_path: Path) -> None:
    """The largest of many samples is one of them, whichever it is."""
    count = 3 * MOST_SAMPLES + 1
    rows = [
        {"flow": 1, "part": 0, "time_ns": number * 10**7, "cwnd_segments": 5000 if number == 1000 else number}
        for number in range(count)
    ]
    tables.write(tmp_path, "flows", frame("flows", [flow(1)]))
    tables.write(tmp_path, "series", frame("series", rows))
    files = {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    [(times, values)] = SingleRun(files, b"{}", unnamed_to_json(schedules.schedule())).series("cwnd").values()
    assert times.size == count and values.max() == 5000 and times[1000] == 10
