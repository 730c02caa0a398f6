"""A good student of lab 1: sums, the printed tables, and Little's law."""

from __future__ import annotations

from tests.extras.course.desk import Desk, written

PACKET_BITS = 1538 * 8


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    desk.run(desk.commands[0])
    pings, datagrams = desk.run(desk.commands[1]), desk.run(desk.commands[3])
    delay, rate = desk.number("land_delay") + desk.number("sea_delay"), desk.number("sea_rate")
    small, large = (desk.read(pings, "ping rtt p50 of sea", size=size) for size in (56, 1472))
    arriving = desk.read(datagrams, "aggregate goodput", offered="4Mbit/s")
    queued = desk.read(datagrams, "udp delay p99 of stream", offered="4Mbit/s")
    return {
        "light": written(2 * delay, "time"),
        "small": written(desk.read(pings, "ping rtt p50 of both", size=56), "time", 4),
        "serial": written(PACKET_BITS / rate, "time", 4),
        "large": written(desk.read(pings, "ping rtt p50 of both", size=1472), "time", 4),
        "derived": written(2 * (1472 - 56) * 8 / (large - small), "rate", 3),
        "forward": "a router sends a packet on when its last bit has come",
        "train": written(desk.read(datagrams, "udp delay p99 of train", offered="800kbit/s"), "time", 4),
        "turned": "at the same time",
        "pipe": written(rate * desk.number("sea_delay") / 8, "size", 4),
        "most": written(arriving, "rate", 4),
        "queued": written(queued, "time", 4),
        "inside": written(arriving / (1472 * 8) * queued, "packets", 2),
        "helps": "Half the delay helps the move, twice the rate helps the film.",
    }
