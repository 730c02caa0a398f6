"""The share of the load that was touched: by the links that it crosses, in the seconds in which they left their
tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ewan.analysis import disturbance_overlap, summary
from ewan.analysis.network import Ways
from ewan.analysis.tests import synthetic
from ewan.analysis.tests.synthetic import SECOND, frame
from ewan.labs.base import codec
from ewan.labs.record.disturbances import Disturbance
from ewan.labs.record.summary import RunDisturbances, RunSummary, SeenDisturbance
from tests import summaries

BIN = SECOND // 2
WAYS: Ways = {("left1", "right1"): (("core", "forward"),), ("left2", "right2"): (("other", "backward"),)}


def late(second: int, link: str | None, marks: bool = True) -> Disturbance:
    return Disturbance(second * SECOND, (second + 1) * SECOND, "late", "", link, marks, "")


def touched(*seen: Disturbance, **values: object) -> tuple[int, int]:
    """Two flows of four seconds, each with a link of its own, of 100 and 1000 bytes a bin."""
    own = [synthetic.flow(number, source=f"left{number + 1}", sink=f"right{number + 1}", **values) for number in (0, 1)]
    bins = [
        {"flow": flow, "part": 0, "time_ns": (n + 1) * BIN, "bin_ns": BIN, "delivered_bytes": size}
        for flow, size in ((0, 100), (1, 1000))
        for n in range(8)
    ]
    return disturbance_overlap.touched_bytes(frame("flows", own), frame("goodput", bins), WAYS, seen)


def test_what_a_flow_received_while_its_link_was_out_of_tolerance_is_touched() -> None:
    assert touched() == (0, 8 * 1100)
    assert touched(late(1, "core"))[0] == 200, "two bins of the first flow"
    assert touched(late(1, "other"))[0] == 2000, "in either direction"
    assert touched(late(1, "core"), late(1, "other"), late(3, "core"))[0] == 2400
    assert touched(late(2, None))[0] == 2200, "the clock is everybody's"
    assert touched(late(1, "core", marks=False))[0] == 0


def test_two_disturbances_of_one_second_count_once() -> None:
    assert touched(late(1, "core"), late(1, "core"))[0] == 200


def test_only_the_load_counts() -> None:
    assert touched(late(1, None), role="background") == (0, 0)


def test_payload_of_requests_goes_the_other_way() -> None:
    assert touched(late(1, "core"), kind="requests")[0] == 2200, "of a way that is not known any link counts"


def test_a_summary_has_each_run_and_all_of_them(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, [{"congestion": "reno"}, {"congestion": "bic"}], seeds=(1,), pairs=2, seconds=6)
    assert summary.analyse(tmp_path).disturbed is None
    synthetic.watched(tmp_path, 1)
    synthetic.watched(tmp_path, 2, 2, 3)
    found = summary.analyse(tmp_path)
    quiet, hit = (run.disturbed for run in found.runs)
    assert quiet is not None and hit is not None and hit.share is not None
    assert (quiet.seconds, quiet.share, quiet.seen) == ((), 0, ())
    assert hit.seconds == (2, 3) and [each.kind for each in hit.seen] == ["late", "late"]
    assert 0.1 < hit.share < 0.6 and hit.share == hit.touched_bytes / hit.delivered_bytes
    total = found.disturbed
    assert total is not None and (total.runs, total.watched_runs, total.seconds) == ((2,), 2, 2)
    assert total.share == pytest.approx(hit.touched_bytes / (hit.delivered_bytes + quiet.delivered_bytes))


def test_a_long_list_keeps_what_marks(tmp_path: Path) -> None:
    synthetic.experiment(tmp_path, [{"congestion": "reno"}], seeds=(1,), pairs=2, seconds=4)
    synthetic.watched(tmp_path, 1, *range(150), seconds=150)
    (run,) = summary.analyse(tmp_path).runs
    assert run.disturbed is not None and run.disturbed.seconds == tuple(range(150))
    assert len(run.disturbed.seen) == disturbance_overlap.MOST_SEEN and run.disturbed.left_out == 50


def test_the_reports_table_joins_what_goes_on_and_leaves_out_what_is_told_as_a_cause() -> None:
    def seen(second: int, words: str, marks: bool = False) -> SeenDisturbance:
        return SeenDisturbance(second * SECOND, (second + 1) * SECOND, "late", "", marks, words)

    def run(number: int, own: Sequence[SeenDisturbance], left_out: int) -> RunSummary:
        found = RunDisturbances(10 * SECOND, (), 0, 1, 0.0, tuple(own), left_out)
        return codec.replace(summaries.run({"number": number}), disturbed=found)

    gone, shared = "CPU 1 was taken", "CPU 1 served another lab"
    own = [seen(1, f"9 packets were late: {gone}", True), seen(1, gone), *(seen(n, shared) for n in (1, 2, 3, 5))]
    told, more = disturbance_overlap.rows([run(4, own, 3), summaries.run({"number": 5})])
    assert [(row.run, row.time, row.words) for row in told] == [
        (4, "1.0 to 2.0", f"9 packets were late: {gone}"),
        (4, "1.0 to 4.0", shared),
        (4, "5.0 to 6.0", shared),
    ]
    assert more == 3
    told, more = disturbance_overlap.rows([run(1, [seen(n, f"{n}", n > 80) for n in range(100)], 0)])
    assert (
        len(told) == disturbance_overlap.MOST_ROWS
        and more == 40
        and {f"{n}" for n in range(81, 100)} <= {row.words for row in told}
    )
