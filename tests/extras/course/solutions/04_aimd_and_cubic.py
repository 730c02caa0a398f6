"""A good student of lab 4: reads peaks and lows off the samples of the figure, and computes the rest."""

from __future__ import annotations

from collections import Counter

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk, written

PACKET = 1538
Samples = list[tuple[float, int]]


def windows(results: Results, congestion: str, from_: float, to: float) -> Samples:
    """Times (s) and windows, as figures/cwnd.csv has them."""
    rows = results.table("series").filter(congestion=congestion).sort("time_ns")
    told = zip(rows["time_ns"], rows["cwnd_segments"], strict=True)
    return [(time / 1e9, window) for time, window in told if from_ <= time / 1e9 <= to]


def cuts(samples: Samples) -> list[tuple[int, int]]:
    """Where the window falls by more than a tenth within half a second: the samples of its peak and of its low."""
    found, at, ahead = [], 0, 25
    while at + ahead < len(samples):
        if samples[at + ahead][1] < 0.9 * samples[at][1] and samples[at + 1][1] < samples[at][1]:
            low = min(range(at, at + ahead), key=lambda each: samples[each][1])
            found.append((at, low))
            at += ahead
        at += 1
    return found


def reached(samples: Samples, window: float) -> float:
    return next(time for time, each in samples if each > window)


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    desk.run(desk.commands[0])
    results = desk.run(desk.commands[1])
    later, rtt = desk.number("later"), desk.number("rtt")
    reno, cubic = (windows(results, each, 5, 50) for each in ("reno", "cubic"))
    teeth = cuts(reno)
    (_, low), (end, _) = teeth[-2:]
    ceiling, begun = reno[end][1], reno[teeth[-2][0]][0]
    peak, dip = cuts(cubic)[-1]
    k = (ceiling * 0.3 / 0.4) ** (1 / 3)
    larger = later * rtt / 8 / PACKET
    return {
        "ceiling": written(ceiling, "packets"),
        "slope": written((ceiling - reno[low][1]) / (reno[end][0] - reno[low][0]), "ratio", 3),
        "tooth": f"{reno[end][0] - begun:.2f}s",
        "per_loss": written(0.75 * ceiling * (reno[end][0] - begun) / (1.05 * rtt), "packets", 3),
        "years": f"{0.5 * 10e9 * rtt / 8 / PACKET * rtt:.4g}s",
        "beta": written(cubic[dip][1] / cubic[peak][1], "ratio", 3),
        "k": f"{k:.2f}s",
        "curve": written(0.4 * (2 - k) ** 3 + ceiling, "packets", 3),
        "plateau": written(Counter(window for _, window in cubic).most_common(1)[0][0], "packets"),
        "reno_finds": f"{reached(windows(results, 'reno', 50, 85), larger) - 50:.1f}s",
        "cubic_finds": f"{reached(windows(results, 'cubic', 50, 85), larger) - 50:.1f}s",
        "rtts": "Reno's",
        "why": "Back quickly, stay near what worked, then look further.",
    }
