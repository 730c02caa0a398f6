"""A good student of lab 10: reads two tables, and finds the queue by the text's own table of requirements."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tests.extras.course.desk import Desk, written

TARGETS = ("10ms", "14ms", "18ms", "22ms", "26ms")


def solve(desk: Desk) -> dict[str, str | Mapping[str, str]]:
    """The answers."""
    rate, rtt, buffer, lost = (desk.number(name) for name in ("rate", "rtt", "buffer", "lost"))
    _, queues, marks, *_ = (desk.run(command) for command in desk.commands)

    def call(quantile: str, queue: str) -> float:
        return desk.read(queues, f"udp delay {quantile} of call", queue=queue)

    single = {queue: call("p99", queue) for queue in ("drop-tail", "codel", "pie")}
    return {
        "ceiling": written(buffer * 8 / rate, "time"),
        "tail": written(single["drop-tail"], "time"),
        "typical": written(call("p50", "codel") - rtt / 2, "time"),
        "worst": written(single["codel"] - rtt / 2, "time"),
        "burst": "Slow start overshoots before the first interval is over, and drops come one by one.",
        "single": min(single, key=lambda queue: single[queue]),
        "isolated": written(call("p99", "fq-codel") - rtt / 2, "time"),
        "packet": written(1500 * 8 / rate, "time"),
        "starved": written(desk.read(marks, "share of classic", ecn="true"), "share"),
        "bully": "One mark in 50 costs CUBIC 30 % of its window, Prague 1 %.",
        "coupled": written(2 * math.sqrt(lost), "share"),
        "ratio": f"{2 * math.sqrt(lost) / lost:.4g}",
        "tuned": {"queue": "dualpi2", "target": target(desk, rtt)},
        "verdict": "FQ-CoDel where flows can be told apart and senders are classic; DualPI2 for scalable ones.",
    }


def target(desk: Desk, rtt: float) -> str:
    """The first target that meets the requirements."""
    swept = desk.run(f"ewan run tuning.scenario.yaml --set target={','.join(TARGETS)} --runtime virtual")
    for each in TARGETS:
        read = {words: desk.read(swept, words, target=each) for words in swept_words()}
        classic, scalable = read["share of classic"], read["share of scalable"]
        met = (
            read["rtt p95 of scalable"] <= rtt + 0.012,
            read["rtt p95 of classic"] <= rtt + 0.045,
            read["udp delay p99 of call"] <= rtt / 2 + 0.05,
            read["utilisation"] >= 0.96,
            min(classic, scalable) >= 0.4,
        )
        if all(met):
            return each
    raise AssertionError("no target meets the requirements")


def swept_words() -> tuple[str, ...]:
    """The metrics of the table of requirements."""
    return (
        *("rtt p95 of scalable", "rtt p95 of classic", "udp delay p99 of call"),
        *("utilisation", "share of classic", "share of scalable"),
    )
