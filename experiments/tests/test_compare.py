"""A repetition beside its original: differences beyond noise, and their places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ewan.analysis.differences import expanded
from ewan.experiments.engine import compare
from ewan.experiments.tests.crates import ended
from ewan.generator.rows import frame_of
from ewan.labs.record import tables
from ewan.labs.record.summary import Summary
from tests import summaries


def test_welch_finds_what_is_beyond_noise_and_nothing_else() -> None:
    before = [100.0, 101.0, 99.0, 100.5, 99.5]
    assert (
        compare.judge("fairness per flow", before, [100.2, 99.8, 100.9, 99.3, 100.0], 0.01, expanded)[0]
        == "within noise"
    )
    assert (
        compare.judge("fairness per flow", before, [110.0, 111.0, 109.0, 110.5, 109.5], 0.01, expanded)[0]
        == "different"
    )
    assert compare.judge("fairness per flow", before, list(reversed(before)), 0.01, expanded)[0] == "same"


def test_single_runs_have_a_stated_tolerance_or_none() -> None:
    assert compare.judge("aggregate goodput", [100.0], [109.0], 0.01, expanded)[0] == "within noise"
    verdict, why = compare.judge("aggregate goodput", [100.0], [120.0], 0.01, expanded)
    assert verdict == "different" and "different above 10%" in why
    assert compare.judge("queue loss", [0.0], [0.001], 0.01, expanded)[0] == "shown"


def summary(goodputs: Sequence[float]) -> Summary:
    return summaries.summary(
        runs=[{"metrics": {"mean goodput": {"value": value, "unit": "bit/s"}}} for value in goodputs]
    )


def test_a_live_repetition_is_judged_metric_by_metric() -> None:
    (finding,) = compare.live(summary([9.1e6, 9.2e6, 9.3e6]), summary([4.1e6, 4.2e6, 4.3e6]), expanded)
    assert (finding.what, finding.before, finding.now) == ("mean goodput", "9.2 Mbit/s", "4.2 Mbit/s")
    assert finding.verdict == "different"


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    for name in ("before", "now"):
        place = tmp_path / name
        place.mkdir()
        rows = [{"flow": 0, "part": 0, "number": n, "start_ns": n * 10, "duration_ns": 5} for n in range(3)]
        if name == "now":
            rows[2]["duration_ns"] = 6
        tables.write(place, "exchanges", frame_of(rows, "exchanges"))
        (place / "wall.json").write_text(name)
    before, now = tmp_path / "before", tmp_path / "now"
    assert compare.first_difference(before, now) == ("exchanges.parquet: row 2, duration_ns: 5 ns before, 6 ns now"), (
        "wall.json is of the machine"
    )
    (now / "events.json").write_text("{}")
    assert compare.first_difference(before, now) == "events.json is only in the repetition"


def test_equal_within_u_says_how_wide_u_is() -> None:
    (finding,) = compare.live(summary([9.1e6, 9.2e6, 9.3e6]), summary([9.2e6, 9.3e6, 9.4e6]), expanded)
    # s = 0.1 Mbit/s of three each: u = 0.1 √(2/3) = 81.6 kbit/s; Student's t of 4 degrees at one percent is 4.604.
    assert finding.verdict == "within noise"
    assert finding.why.startswith("apart by 100 kbit/s, U = 375.9 kbit/s (k = 4.6); Welch: p = 0.29")


def test_another_kernel_is_named_before_the_runs_and_only_where_results_differ(tmp_path: Path) -> None:
    before, now = ended(tmp_path / "before"), ended(tmp_path / "now")
    now.document.kernel_sha256 = "c" * 64
    assert [each.verdict for each in compare.virtual(before, now)] == ["same", "same"]
    (now.place(now.runs[1]) / "events.json").write_text("{}")
    kernel, *runs = compare.virtual(before, now)
    assert (kernel.what, kernel.before, kernel.now) == ("virtual kernel", "a" * 12, "c" * 12)
    assert [each.verdict for each in runs] == ["same", "different"]


def test_runs_that_the_original_did_not_complete_are_not_compared(tmp_path: Path) -> None:
    before, now = ended(tmp_path / "before", complete=1), ended(tmp_path / "now")
    (now.place(now.runs[1]) / "events.json").write_text("{}")
    assert [each.verdict for each in compare.virtual(before, now)] == ["same", "shown"]
