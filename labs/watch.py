"""`ewan watch`: what the links of a lab do now, each direction with its rate, queue, drops and lateness.

In: the spinners' millisecond series. Out: a view that redraws itself twice a second until Ctrl-C, one view with
--once, or one JSON object a line with --json.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import click
import orjson
from rich.live import Live

from labs import cli
from labs.plan import Link, Plan
from labs.sheet import Sheet
from labs.stages import Direction
from labs.units import NS_PER_MS, about, mean_rate_bps

WINDOW_MS = 500
BARS = " ▁▂▃▄▅▆▇█"
COLUMNS = [
    "link",
    "from → to",
    "rate",
    "of",
    "queue, last half second",
    "worst",
    "lost",
    "queue full",
    "AQM",
    "no room",
    "late at most",
]
CAUSES = ("lost", "queue_full", "aqm", "store_full")


@click.command("watch")
@cli.live_option
@click.argument("name", required=False)
@click.option("--once", is_flag=True, help="one view, then end")
@cli.json_option
@cli.guarded
def watch_command(name: str | None, once: bool, as_json: bool) -> None:
    """Rate, queue and drops of every link, live; Ctrl-C ends.

    \b
    ewan watch
    ewan watch dumbbell --once --json
    """
    cli.as_root()
    lab = cli.which(name)
    plan = cli.runtime().load(lab).plan
    if not plan.spinners:  # in the live clock all links have one, or none has
        raise cli.fail(
            f"the links of {lab} are made of the kernel's parts, which tell no course of theirs: "
            "bring it up with --emulator user"
        )
    if as_json or once:
        while True:
            links = sample(lab, plan)
            if as_json:
                sys.stdout.buffer.write(orjson.dumps({"lab": lab, "window_ms": WINDOW_MS, "links": links}) + b"\n")
                sys.stdout.flush()
            else:
                cli.console.print(view(plan, links))
            if once:
                return
            time.sleep(WINDOW_MS / 1000)
    with suppress(KeyboardInterrupt), Live(console=cli.console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(view(plan, sample(lab, plan)), refresh=True)
            time.sleep(WINDOW_MS / 1000)


def sample(lab: str, plan: Plan) -> list[dict[str, Any]]:
    """Each direction over the last `WINDOW_MS`."""
    runtime = cli.runtime()
    stats = [runtime.control(lab, number, {"command": "stats"}) for number in range(len(plan.spinners))]
    serving = {link: number for number, spinner in enumerate(plan.spinners) for link in spinner.links}
    found = []
    for link in plan.links:
        answer = stats[serving[link.name]]
        since_ms, ended = max(0, answer["now_ms"] - WINDOW_MS), answer["links"][link.name]["ended"]
        request = {"command": "series", "link": link.name, "since_ms": since_ms}
        series = runtime.control(lab, serving[link.name], request)
        for heading in ("forward", "backward"):
            found.append({"link": link.name, "direction": heading, "ended": ended, **summary(series[heading])})
    return found


def summary(rows: dict[str, list[int]]) -> dict[str, Any]:
    """What a window of milliseconds adds up to; the rate counts what the link's framing counts."""
    length_ms = max(1, len(rows["out_bytes"]))
    course = rows["queue_max_bytes"]
    return {
        "rate_bps": mean_rate_bps(sum(rows["out_bytes"]), length_ms * NS_PER_MS),
        "out_packets": sum(rows["out_packets"]),
        "queue_course_bytes": [max(course[i : i + WINDOW_MS // 20]) for i in range(0, len(course), WINDOW_MS // 20)],
        "queue_max_bytes": max(course, default=0),
        **{f"{cause}_packets": sum(rows[cause]) for cause in CAUSES},
        "lateness_max_ns": max(rows["lateness_max_ns"], default=0),
    }


def view(plan: Plan, found: list[dict[str, Any]]) -> Sheet:
    links = {link.name: link for link in plan.links}
    rows = []
    for each in found:
        link = links[each["link"]]
        way: Direction = getattr(link, each["direction"])
        full = way.queue.limit_bytes or max(1, each["queue_max_bytes"])
        rows.append(
            [
                link.name,
                ends(link, each["direction"]),
                about(each["rate_bps"], "rate") if each["ended"] is None else "ended by a fault",
                about(way.rate_bps, "rate"),
                sparkline(each["queue_course_bytes"], full),
                about(each["queue_max_bytes"], "size"),
                *(str(each[f"{cause}_packets"] or "") for cause in CAUSES),
                about(each["lateness_max_ns"], "time"),
            ]
        )
    return cli.grid(f"Links of {plan.lab}", COLUMNS, rows)


def ends(link: Link, heading: str) -> str:
    return f"{link.a.node} → {link.b.node}" if heading == "forward" else f"{link.b.node} → {link.a.node}"


def sparkline(values: list[int], full: int) -> str:
    """Each value as a bar of eighths of `full`."""
    return "".join(BARS[min(8, -(-8 * value // full))] for value in values)
