"""A good student of lab 2: arithmetic, the table that `ewan run` prints, and the pings one by one."""

from __future__ import annotations

from tests.extras.course.desk import Desk, written

RTT_P95 = "ping rtt p95 of beside"


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    one, ten, all_three = (desk.run(command) for command in desk.commands[:3])
    rate, rtt = desk.number("rate"), desk.number("rtt")
    queue = desk.read(one, RTT_P95, buffer="1BDP") - rtt
    bloated = desk.read(ten, RTT_P95, buffer="10BDP")
    pings = ten.table("pings").filter(step="beside", buffer="10BDP").sort("time_ns")
    crossing = next(time for time, seen in zip(pings["time_ns"], pings["rtt_ns"], strict=True) if seen > 5 * rtt * 1e9)
    goodput = [desk.read(all_three, "aggregate goodput", buffer=buffer) for buffer in ("0.1BDP", "10BDP")]
    return {
        "pipe": written(rate * rtt / 8, "size"),
        "waiting": written(queue * rate / 8 / 1538, "packets", 3),
        "full": written(rtt + 10 * rtt, "time"),
        "bloated": written(bloated, "time", 4),
        "climb": f"{crossing / 1e9 - 5:.1f}s",
        "why": "It waits for a loss. That comes only when 10 BDP more are in the queue.",
        "small": written(desk.read(all_three, RTT_P95, buffer="0.1BDP"), "time", 4),
        "price": written(goodput[0] / goodput[1], "share", 3),
        "tuned": {"buffer": written((1 / 0.7 - 1) * rate * rtt / 8, "size", 3)},
        "page": written(4 * (bloated - rtt), "time", 3),
        "budget": written(rate / 8 * 0.05, "size", 3),
        "shipped": written(256_000 * 8 / rate, "time", 4),
        "remedy": "The call no longer waits. Pages and other uploads still do.",
    }
