"""A good student of lab 3: counts rounds by doubling, and reads windows off the samples of the figure."""

from __future__ import annotations

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk, written

SEGMENT, PACKET = 1448, 1538


def windows(results: Results, **where: str) -> list[tuple[float, int]]:
    """Times (s) and windows, as figures/cwnd.csv has them."""
    rows = results.table("series").filter(**where).sort("time_ns")
    return [(time / 1e9, window) for time, window in zip(rows["time_ns"], rows["cwnd_segments"], strict=True)]


def rounds(volume: int, initial: int) -> tuple[int, int]:
    """Round trips until so many segments have been sent, doubling, and how many the last one has."""
    count, window = 0, initial
    while True:
        count += 1
        if volume <= window:
            return count, volume
        volume, window = volume - window, 2 * window


def highest_before_fall(samples: list[tuple[float, int]]) -> int:
    """The first peak of a window."""
    highest = 0
    for _, window in samples:
        if window < 0.95 * highest:
            break
        highest = max(highest, window)
    return highest


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    rate, rtt = desk.number("rate"), desk.number("rtt")
    reno, both, buffers = desk.run(desk.commands[0]), desk.run(desk.commands[2]), desk.run(desk.commands[3])
    file = desk.run(desk.commands[4])
    pipe = rate * rtt / 8 / PACKET
    fill, window = 1, 10
    while window <= pipe:
        fill, window = fill + 1, 2 * window
    samples = windows(reno)
    peak = highest_before_fall(samples)
    after = [window for time, window in samples if time > next(t for t, w in samples if w == peak)]
    cubic = windows(both, congestion="cubic")
    # Segments that are acknowledged from one sample to the next while the link is busy: slow start grows by as many.
    clocked = rate / 8 / PACKET * 0.005
    top = max(range(len(cubic)), key=lambda each: cubic[each][1])
    bend = max(at for at in range(1, top) if cubic[at][1] - cubic[at - 1][1] > clocked / 2)
    shallow = highest_before_fall(windows(buffers, buffer="0.2BDP"))
    segments = -(-round(desk.number("volume")) // SEGMENT)
    count, last = rounds(segments, 10)
    shares = [desk.read(both, "retransmissions", congestion=each) for each in ("reno", "cubic")]
    return {
        "pipe": written(pipe, "packets", 3),
        "fourth": f"about {round(next(w for t, w in reversed(samples) if t <= rtt + 3.5 * rtt), -1)}",
        "fill": str(fill),
        "peak": written(peak, "packets"),
        "noticed": written(next(t for t, w in samples if w == peak), "time"),
        "threshold": written(next(w for w, then in zip(after, after[10:], strict=False) if w == then), "packets"),
        "hystart": written(cubic[bend][1], "packets"),
        "saved": written(shares[0] - shares[1], "share", 3),
        "shallow": written(shallow / pipe, "ratio", 3),
        "early": "in slow start packets come to the link at twice its rate",
        "rounds": str(count),
        "file": written(desk.read(file, "mean completion time", volume=desk.values["volume"]), "time", 4),
        "faster": written(rtt * (count + 0.5) + last * PACKET * 8 / (2 * rate), "time", 4),
        "older": str(rounds(segments, 3)[0] - count),
        "why": "It begins slowly, and grows faster than anything else.",
    }
