"""Freezes and opinions of video, by hand and by the recommendation's formulas; metrics of media flows."""

from __future__ import annotations

from typing import Any

import pytest

from ewan.analysis import media, metrics
from ewan.analysis.rundata import RunData
from ewan.analysis.tests.synthetic import flow, frame
from ewan.labs.record import tables

MS = 1_000_000


def at(*times_ms: int) -> list[int]:
    return [each * MS for each in times_ms]


def test_even_frames_do_not_freeze() -> None:
    assert media.freezes(at(*range(0, 1000, 40)), 1000 * MS) == (0, 0)


def test_a_frame_freezes_from_150_ms_more_than_the_mean() -> None:
    steady = list(range(0, 1000, 40))
    last = steady[-1]
    assert media.freezes(at(*steady, last + 189, last + 229), (last + 229) * MS) == (0, 0)
    assert media.freezes(at(*steady, last + 190, last + 230), (last + 230) * MS) == (1, 190 * MS)


def test_of_a_slow_video_a_frame_freezes_from_three_times_the_mean() -> None:
    steady = list(range(0, 6000, 200))
    last = steady[-1]
    assert media.freezes(at(*steady, last + 599), (last + 599) * MS).number == 0
    assert media.freezes(at(*steady, last + 600), (last + 600) * MS) == (1, 600 * MS)


def test_the_last_frame_freezes_until_the_end() -> None:
    assert media.freezes(at(0, 40, 80), 5000 * MS) == (1, 4920 * MS)
    assert media.freezes([], 5000 * MS) == (0, 0)


def test_the_best_picture_at_a_rate_is_that_of_the_formula() -> None:
    # 1 Mbit/s: the best number of frames is 5.517 + 12.9, and its quality 1 + v3·(1 − 1/(1 + 5.6013^1.02)).
    best = media.picture_score(1000, 18.417, 0)
    assert best == pytest.approx(1 + 3.459 * (1 - 1 / (1 + (1000 / 178.53) ** 1.02)))
    assert best > media.picture_score(1000, 30, 0) > media.picture_score(300, 30, 0)
    # D_PplV is 0.736 + 13.684·exp(−1000/513.77) = 2.690 %: this loss costs the factor 1/e.
    assert media.picture_score(1000, 18.417, 0.02690) - 1 == pytest.approx((best - 1) / 2.71828, rel=1e-3)
    assert media.picture_score(0, 30, 0) == media.picture_score(500, 0, 0) == 1


def run(frames: list[dict[str, Any]]) -> RunData:
    flows = [flow(0, kind="media", sent_packets=200, lost_packets=2), flow(1, kind="bulk")]
    given = {"flows": frame("flows", flows), "frames": frame("frames", frames)}
    return RunData(lambda name: given[name] if name in given else tables.empty(name))


def frames() -> list[dict[str, Any]]:
    """100 frames of 1000 bytes, 40 ms apart; the delay is the number in ms, of the last ten none came, and the ten
    before them were not shown."""
    rows = []
    for number in range(100):
        captured = number * 40 * MS
        came = captured + number * MS if number < 90 else None
        shown = came if number < 80 else None
        own = {"number": number, "key": number == 0, "size_bytes": 1000, "captured_ns": captured, "sent_ns": captured}
        rows.append({"flow": 0, "part": 0, **own, "completed_ns": came, "shown_ns": shown})
    return rows


def test_metrics_of_frames() -> None:
    found = metrics.of_run(run(frames()))
    assert (found["frame delay p50"], found["frame delay p99"]) == (44 * MS, 89 * MS)
    assert (found["frames lost"], found["frames not shown"]) == (0.1, 0.2)
    # 1000 bytes each 40 ms.
    assert found["media rate"] == pytest.approx(200_000)
    # The 80th is shown at 79 · 40 + 79 ms, the last is captured at 99 · 40 ms.
    assert found["freezes"] == 1
    assert found["freeze share"] == pytest.approx((99 * 40 - 79 * 41) / (99 * 40))
    assert found["picture mos"] == pytest.approx(media.picture_score(160, 20, 0.01))


def test_a_run_without_media_has_none_of_them() -> None:
    found = metrics.of_run(run([]))
    assert not [name for name in found if "frame" in name or "media" in name or "freeze" in name or "picture" in name]
