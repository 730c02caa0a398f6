"""`make bench`: the performance of links, labs, generator and compiler, each beside a reference in the same run.

In: the built binaries and root. Out: tables of ratios, and all measurements as JSON in results/bench/. Nothing here is
a test: a busy machine gives other values, which is why each row has its reference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson

from ewan.labs import host
from ewan.labs.base import codec, interrupt, writing
from ewan.labs.base.reporter import Reporter
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import machines_option, pass_context, trust_option
from ewan.labs.commands.privileges import as_root
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.record import host_facts
from ewan.labs.spec import from_template
from tests.bench import (
    containers,
    course,
    estimate,
    machines,
    programs,
    simulators,
    studio,
    sweep,
    timed,
    traffic,
    virtual,
)
from tests.bench.compile import measure

RESULTS = Path("results/bench")
ARMS = 100
LINK_PARTS = ("packets", "lateness", "rate", "flows")
PARTS = (
    "compile",
    "labs",
    "containers",
    *LINK_PARTS,
    "traffic",
    "virtual",
    "programs",
    "estimate",
    "sweep",
    "course",
    "simulators",
    "machines",
    "studio",
)
RARE = ("sweep", "course", "containers", "simulators", "machines", "studio")
"""Only when they are asked for: they need minutes, an engine and the images, simulators, machines, a browser."""


@click.command("bench")
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--quick", is_flag=True, help="shorter, and less exact")
@click.option("--minutes", default=2.0, show_default=True, help="of studio: for how long memory is watched")
@machines_option
@trust_option
@guarded
@pass_context
def bench_command(context: Context, parts: tuple[str, ...], quick: bool, minutes: float) -> None:
    """Measure this machine's performance, side by side; JSON goes to results/bench/.

    \b
    make bench
    make bench PART="lateness rate" OPTS=--quick
    """
    wanted = parts or tuple(part for part in PARTS if part not in RARE)
    if {"labs", "containers", "traffic", "machines", "studio", *LINK_PARTS} & set(wanted):
        as_root(context, (sys.executable, "-m", "tests.bench"))
    reporter = context.reporter
    now, facts = datetime.now(UTC).isoformat(timespec="seconds"), codec.data_of(host_facts({}))
    report: dict[str, Any] = {"time": now, "host": facts}
    if "compile" in wanted:
        report["compile"] = [measure(arms, 3) for arms in (ARMS, 5_000)]
        show_compile(reporter, report["compile"])
    if "labs" in wanted:
        report["labs"] = labs_up_and_down(context)
        show_labs(reporter, report["labs"])
    shows = (show_packets, show_lateness, show_rates, show_counted_flows)
    for part, show in zip(LINK_PARTS, shows, strict=True):
        if part in wanted:
            found = link_bench(context, part, quick)
            report |= found
            show(reporter, found)
    benches: tuple[tuple[str, str, Any], ...] = (
        ("containers", "labs of containers", containers),
        ("traffic", "generator", traffic),
        ("virtual", "virtual clock", virtual),
        ("programs", "programs", programs),
        ("estimate", "forecasts", estimate),
        ("sweep", "sweeps", sweep),
        ("course", "grading", course),
        ("simulators", "simulators", simulators),
        ("machines", "labs over machines", machines),
        ("studio", "studio", studio.Bench(minutes)),
    )
    for part, what, bench in benches:
        if part in wanted:
            with reporter.progress(what) as status:
                report[part] = bench.measure(context, quick, lambda text, s=status, w=what: s.update(f"{w}: {text}"))
            for title, columns, rows in bench.tables(report[part]):
                draw(reporter, title, columns, rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    writing.write(path, orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    reporter.console.print(f"all measurements: {path}")


def link_bench(context: Context, part: str, quick: bool) -> dict[str, Any]:
    """One part of the datapath's own benchmark; its progress goes to standard error as it comes."""
    binary = context.binary.resolve().parent / "link-bench"
    if not binary.exists():
        raise Refused(f"{binary.name} is not built: make bench builds it")
    command = [str(binary), part, *(["quick"] if quick else [])]
    said = ""
    with (
        tempfile.TemporaryFile() as answer,
        context.reporter.progress(part) as status,
        subprocess.Popen(command, stdout=answer, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        for number, line in enumerate(process.stderr, 1):
            said = line
            status.update(f"{part}: {number} measured")
        if process.wait():
            raise Refused(said.strip())
        answer.seek(0)
        found: dict[str, Any] = json.load(answer)
    return found


def labs_up_and_down(context: Context) -> dict[str, float]:
    """A star of `ARMS` hosts up and down, its links running; beside it, ip(8) making as many pairs of namespaces."""
    name = f"bench{os.getpid()}"  # of this run alone: a lab called bench is somebody's
    plan = compile(from_template("star", {"arms": str(ARMS), "name": name, "rate": "100Mbit/s"}), host.facts())
    runtime = context.live("netns")
    try:
        up_s = timed(lambda: runtime.up(plan))
    finally:
        down_s = timed(lambda: runtime.down(name))
    sides = [(f"ewan-{name}-a{arm}", f"ewan-{name}-b{arm}") for arm in range(ARMS)]
    pair = "netns add {0}\nnetns add {1}\nlink add e0 netns {0} type veth peer name e0 netns {1}"
    try:
        ip_s = timed(lambda: ip_batch("\n".join(pair.format(*ends) for ends in sides)))
    finally:
        ip_batch("\n".join(f"netns del {end}" for ends in sides for end in ends), "-force")
    return {"arms": ARMS, "namespaces": len(plan.nodes), "up_s": up_s, "down_s": down_s, "ip_batch_s": ip_s}


def ip_batch(commands: str, *options: str) -> None:
    """Runs commands of `ip`, a line each. With `options` it may fail: clearing away does, where something is gone."""
    subprocess.run(["ip", *options, "-batch", "-"], input=commands.encode(), check=not options, capture_output=True)


def seconds(value: float) -> str:
    """A time in seconds, with a unit that fits."""
    return about(value * NS_PER_SECOND, "time")


def draw(reporter: Reporter, title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Prints a table, and an empty line."""
    reporter.console.print(grid(title, columns, rows))
    reporter.console.print()


def show_compile(reporter: Reporter, found: list[dict[str, float]]) -> None:
    """Prints how long the compiler takes, a row a size of lab."""
    rows = [
        [f"{f['nodes']:.0f}", about(f["plan_bytes"], "size"), seconds(f["best_s"]), seconds(f["worst_s"])]
        for f in found
    ]
    draw(reporter, "Compiler: a star, from interpreter start to plan.json", ["nodes", "plan", "best", "worst"], rows)


def show_labs(reporter: Reporter, found: dict[str, float]) -> None:
    """Prints how long a lab takes to come up and to go, beside `ip -batch`."""
    ratio = found["up_s"] / found["ip_batch_s"]
    row = [str(found["namespaces"]), *(seconds(found[key]) for key in ("up_s", "down_s", "ip_batch_s")), f"{ratio:.2f}"]
    columns = ["namespaces", "up, links running", "down", "ip -batch: namespaces and pairs alone", "up / ip"]
    draw(reporter, f"Labs: a star of {ARMS} hosts", columns, [row])


def show_packets(reporter: Reporter, found: dict[str, Any]) -> None:
    """Prints the highest packet rates, a row a port and frame size."""
    rows = []
    plain = {row["frame_bytes"]: row["packets_per_second"] for row in found["packet_rate"] if row["port"] == "veth"}
    for row in found["packet_rate"]:
        ratio = row["packets_per_second"] / plain[row["frame_bytes"]]
        core = row.get("link_core_packets_per_second")
        limit = "sender" if row["sender_is_the_limit"] else "link" if row["port"] != "veth" else "pair"
        rate = about(row["bits_per_second"], "rate")
        rows.append(
            [
                row["port"],
                f"{row['frame_bytes']} B",
                f"{row['packets_per_second']:,.0f}",
                rate,
                f"{ratio:.2f}",
                limit,
                f"{core:,.0f}" if core else "",
            ]
        )
    columns = [
        "port",
        "frame",
        "packets/s without loss",
        "rate",
        "× plain veth",
        "limited by",
        "one core could, packets/s",
    ]
    draw(reporter, "Highest packet rate through one link core", columns, rows)


def show_lateness(reporter: Reporter, found: dict[str, Any]) -> None:
    """Prints release errors, a row a port, rate and load."""
    rows = []
    for row in found["lateness"]:
        own, undisturbed, whole = (
            row["release_lateness_ns"],
            row["release_lateness_undisturbed_ns"],
            row["end_to_end_error_ns"],
        )
        where = [row["port"], about(row["rate_bps"], "rate"), f"{row['load_percent']} %"]
        rows.append([*where, *three(own), *three(undisturbed)[:2], *three(whole)])
    columns = ["port", "link", "load", "p50", "p99", "max", "CPU kept: p50", "p99", "end to end: p50", "p99", "max"]
    draw(
        reporter,
        "Release error of the link (due against actual), and end to end beside a plain veth pair",
        columns,
        rows,
    )


def three(found: dict[str, Any] | None) -> list[str]:
    """Cells of three quantiles of a time in ns; empty where they are not known."""
    if found is None:
        return ["", "", ""]
    return [about(found[key], "time") if found[key] is not None else "" for key in ("p50", "p99", "max")]


def show_rates(reporter: Reporter, found: dict[str, Any]) -> None:
    """Prints rate errors, a row a rate."""
    rows = []
    for row in found["rate_error"]:
        error = row["error_ppm"]
        shown = f"{error / 10_000:+.5f} %" if error is not None else ""
        rows.append([row["by"], about(row["rate_bps"], "rate"), shown])
    draw(reporter, "Rate error, 120 % of the rate offered", ["by", "rate", "error"], rows)


def show_counted_flows(reporter: Reporter, found: dict[str, Any]) -> None:
    """Prints what a packet costs a link, without and with its flow counted."""
    row = found["counted_flows"]
    words = (("no", "ns_per_packet"), ("yes", "ns_per_packet_counted"))
    rows = [
        [word, *(about(round(row[key][part]), "time") for part in ("median", "least", "most"))] for word, key in words
    ]
    title = f"Time of a link for a packet of 1518 B, 80 kpkt/s, {row['rounds']} rounds"
    draw(reporter, title, ["flow counted", "median", "least", "most"], rows)


if __name__ == "__main__":
    interrupt.begin()
    interrupt.run(lambda: bench_command(obj=Context.of(os.environ)))
