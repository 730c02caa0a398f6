"""Traces: what files say, what is refused in one line, what a plan then has, and what is generated."""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.labs import traces
from ewan.labs.change import compile_change, wanted
from ewan.labs.commands.trace import trace_command
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.link import BernoulliLoss, ConstantDelay, Framing, NoTrace, TraceOpportunities, TraceRows
from ewan.labs.link.trace import beyond
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError, load
from ewan.labs.traces import Opportunities, TraceError, TraceStep, TraceSteps, generated, reading, writing

MS, SECOND = 10**6, 10**9
MBIT = 10**6
HOST = HostFacts((0, 1), ())
CSV = "time,rate,delay,loss\n0s,40Mbit/s,45ms,0.1%\n2s,0,,\n3s,20Mbit/s,60ms,\n4s,,,\n"


def read(text: str) -> traces.Trace:
    return reading.parse("x", text)


def test_our_csv_names_its_columns() -> None:
    rows = (
        TraceStep(0, 40 * MBIT, 45 * MS, 10**6),
        TraceStep(2 * SECOND, 0),
        TraceStep(3 * SECOND, 20 * MBIT, 60 * MS),
        TraceStep(4 * SECOND),
    )
    assert read(CSV) == TraceSteps(rows, 4 * SECOND)
    assert read("# made by hand\n\ntime , buffer\n0s, 20kB\n") == TraceSteps((TraceStep(0, limit_bytes=20_000),), 0)


def test_mahimahi_counts_opportunities_in_milliseconds() -> None:
    assert read("1\n1\n3\n10\n") == Opportunities(((MS, 2), (3 * MS, 1), (10 * MS, 1)), 10 * MS)
    assert traces.mean(read("1\n"), "rate") == 12_032_000


def test_theaterq_keeps_each_row_for_a_while() -> None:
    text = "# KEEP,LATENCY\n1000000,20000000,8000000,42949673,100\n500,1,9000,0,1\n"
    assert read(text) == TraceSteps(
        (TraceStep(0, 8 * MBIT, 20 * MS, 10**7), TraceStep(SECOND, 9000, 1, 0)), SECOND + 500_000
    )
    assert read("1000,5,0,8000,0,7,0,0\n") == TraceSteps((TraceStep(0, 8000, 5, 0),), MS)


def test_pairs_of_seconds_and_mbit_hold_until_their_time() -> None:
    text = "0.38\t2.66\n0.96  3.5\n1.5 0\n2.529000043869019 1e1\n"
    rows = (TraceStep(0, 3_500_000), TraceStep(580 * MS, 0), TraceStep(1120 * MS, 10 * MBIT))
    assert read(text) == TraceSteps(rows, 2_149_000_044)
    assert traces.mean(read("0 9\n1 2\n2 4\n"), "rate") == 3 * MBIT


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "x is empty: write a header"),
        ("time\n0s\n", 'x:1: write a header of "time" and any of rate, delay, loss, buffer'),
        ("time,speed\n0s,1\n", 'x:1: write a header of "time"'),
        ("time,rate,rate\n", "each once"),
        ("time,rate\n", "x has no row"),
        ("time,rate\n1s,1G\n", 'x:2: time "1s": the first one must be 0'),
        ("time,rate\n0s,1G\n0s,1G\n", 'x:3: time "0ms": is not after the row before it'),
        ("time,rate\n0s,1G,\n", "x:2: has 3 columns: write 2"),
        ("time,rate\n0s,1000\n", 'x:2: rate "1000": write a rate as "1000Mbit/s"'),
        ("time,rate\n0s,root:x:secret\n", 'x:2: rate: write a rate as "1Gbit/s"'),
        ("time,rate,loss\n0s,1G,\n", "x:2: the first row says no loss"),
        ("time,delay\n0s,11s\n", 'x:2: delay "11s": is too long'),
        ("time,buffer\n0s,0B\n", "write a buffer from 1B to 8GiB"),
        ("5\n4\n", 'x:2: opportunity "4": is before the one above it'),
        ("5\n4.5\n", 'x:2: opportunity "4.5": write a whole number'),
        ("0\n", "x has no opportunity after 0"),
        ("1,2\n", "x:1: has 2 columns: write KEEP,LATENCY,RATE,LOSS,LIMIT"),
        ("1000,5,0,0,7\n", 'x:1: RATE "0": write at least 8000 (0 is no limit there)'),
        ("0,5,8000,0,7\n", "x:1: KEEP is 0"),
        ("1000,5,1,8000,0,7,0,0\n", "x:1: a trace here has no jitter"),
        ("secret\n", "x has no row"),
        (
            "0.5,2.66\n",
            "x:1: has 2 columns: write KEEP,LATENCY,RATE,LOSS,LIMIT, a header of ours, or seconds and Mbit/s",
        ),
        ("0 1.5 20\n", "x:1: has 3 columns: write KEEP,LATENCY,RATE,LOSS,LIMIT, a header of ours, or seconds and"),
        ("0.5;2.66\n", "x:1: has 2 columns: write KEEP,LATENCY,RATE,LOSS,LIMIT, a header of ours, or seconds and"),
        ("0 1\n", "x has no two lines of seconds and Mbit/s"),
        ("0 1\n1 2 3\n", "x:2: has 3 columns: write seconds and Mbit/s"),
        ("0 1\n1 secret\n", 'x:2: rate: write a number, like "0.5"'),
        ("1 1\n1 2\n", 'x:2: time "1": is not after the line before it'),
        ("0 1\n1 0.001\n", 'x:2: rate "0.001": write 0 for an outage, or at least 0.008'),
        ("0 1\n1 9999999999\n", 'x:2: rate "9999999999": write at most'),
        ("0 1\n1 1e99\n", "x:2: rate"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(text: str, says: str) -> None:
    with pytest.raises(TraceError) as refused:
        read(text)
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", [CSV, "8\n9\n10\n10\n", "1000,5,8000,0,7\n1000,5,9000,0,7\n"])
def test_a_file_that_was_cut_off_within_a_line_is_refused_with_that_line(text: str) -> None:
    read(text)
    for end in range(1, len(text)):
        if text[end - 1] != "\n":
            with pytest.raises(TraceError, match=f"^x:{text[:end].count(chr(10)) + 1}: the last line has no line end"):
                read(text[:end])


def test_what_becomes_of_a_trace_in_a_longer_run_is_said(tmp_path: Path) -> None:
    repeated = plan(tmp_path, "{trace: {file: t.csv}, buffer: 100kB}").links[0].forward.trace
    held = plan(tmp_path, "{trace: {file: t.csv, after: hold}, buffer: 100kB}").links[0].forward.trace
    assert beyond(repeated, 4 * SECOND) == beyond(held, 4 * SECOND) == beyond(NoTrace(), SECOND) == ""
    assert beyond(repeated, 10 * SECOND) == "its trace of 4s begins again, 2.5 times in all"
    assert beyond(held, 10 * SECOND) == "its trace ends after 4s, and its last row holds"


def test_a_window_begins_with_what_holds_then() -> None:
    inside = traces.window(read(CSV), 2500 * MS, 4 * SECOND)
    assert inside == TraceSteps(
        (TraceStep(0, 0, 45 * MS, 10**6), TraceStep(500 * MS, 20 * MBIT, 60 * MS), TraceStep(1500 * MS)), 1500 * MS
    )
    assert traces.mean(inside, "rate") == 20 * MBIT * 2 // 3
    assert traces.bounds(inside, "delay") == (45 * MS, 60 * MS)
    assert traces.window(read("1\n3\n10\n"), MS, 5 * MS) == Opportunities(((2 * MS, 1),), 4 * MS)
    with pytest.raises(TraceError, match="is empty: write a later to"):
        traces.window(read(CSV), 5 * SECOND, None)
    with pytest.raises(TraceError, match="ends at 10ms, before its to, 11ms"):
        traces.window(read("10\n"), None, 11 * MS)
    with pytest.raises(TraceError, match="nothing leaves from 1ms to 5ms"):
        traces.window(read("1\n10\n"), MS, 5 * MS)


def test_a_peak_holds_for_any_window_of_its_length() -> None:
    bursts = Opportunities(((MS, 1), (9 * MS, 3), (10 * MS, 2)), 10 * MS)
    one = 1504 * 8
    assert traces.peak_bps(bursts, MS) == 5 * one * 1000
    assert traces.peak_bps(bursts, 2 * MS) == 6 * one * 500
    assert traces.peak_bps(bursts, 12 * MS) == -(-12 * one * SECOND // (12 * MS))


def plan(folder: Path, wan: str, more: str = "") -> Plan:
    (folder / "t.csv").write_text(CSV)
    (folder / "t.mahimahi").write_text("1\n1\n3\n10\n")
    (folder / "out.csv").write_text("time,rate\n0s,1Mbit/s\n1s,0\n")
    (folder / "long.csv").write_text("time,rate\n0s,1Mbit/s\n1s,0\n1000s,\n")
    whole = "0s,1Mbit/s\n1s,2Mbit/s\n2s,\n"
    (folder / "imported.csv.source.yaml").write_text(f"sha256: {hashlib.sha256(whole.encode()).hexdigest()}\n")
    (folder / "imported.csv").write_text("time,rate\n" + whole[:22])
    (folder / "b.csv").write_text("time,buffer\n0s,20kB\n1s,90kB\n2s,\n")
    file = folder / "x.lab.yaml"
    file.write_text(f"topology: dumbbell\nwan: {wan}\n{more}")
    return compile(load(file), HOST)


def test_a_plan_has_the_rows_and_their_means(tmp_path: Path) -> None:
    core = plan(tmp_path, "{trace: {file: t.csv}, buffer: 100kB}").links[0].forward
    assert (core.rate_bps, core.delay, core.loss) == (25 * MBIT, ConstantDelay(48_750_000), BernoulliLoss(10**6))
    rows = ((0, 40 * MBIT, 45 * MS, 10**6, None), (2 * SECOND, 0, None, None, None))
    assert core.trace == TraceRows(period_ns=4 * SECOND, rows=(*rows, (3 * SECOND, 20 * MBIT, 60 * MS, None, None)))
    assert core.store_bytes >= 40 * MBIT // 8 * 60 // 1000 + 100_000, "the peak rate and the longest delay"
    held = plan(tmp_path, "{trace: {file: t.csv, after: hold}}").links[0].forward
    assert isinstance(held.trace, TraceRows)
    assert (held.trace.period_ns, len(held.trace.rows)) == (0, 4)


def test_a_plan_has_opportunities_of_ip_packets(tmp_path: Path) -> None:
    core = plan(tmp_path, "{trace: {file: t.mahimahi}, delay: 5ms}").links[0].forward
    assert core.trace == TraceOpportunities(opportunities=((MS, 2), (3 * MS, 1), (10 * MS, 1)), period_ns=10 * MS)
    assert (core.rate_bps, core.framing) == (4 * 1504 * 8 * 100, Framing(0, 0))
    wire = plan(tmp_path, "{trace: {file: t.mahimahi}, delay: 5ms, framing: wire}").links[0].forward
    assert wire.framing == Framing(38, 84)


def test_a_trace_that_is_nearer_takes_the_place_of_what_is_farther(tmp_path: Path) -> None:
    core = plan(tmp_path, "{rate: 1G, delay: 5ms}", "links: {core: {forward: {trace: {file: t.csv}}}}").links[0]
    assert core.forward.rate_bps == 25 * MBIT
    assert (core.backward.rate_bps, core.backward.trace) == (1000 * MBIT, NoTrace())


def test_a_buffer_over_time_is_sized_by_its_greatest(tmp_path: Path) -> None:
    core = plan(tmp_path, "{trace: {file: b.csv}, rate: 10Mbit/s, delay: 5ms, queue: red}").links[0].forward
    assert core.queue.limit_bytes == 90_000


@pytest.mark.parametrize(
    ("wan", "says"),
    [
        ("{trace: {file: t.csv}, rate: 1G}", 'wan.rate "1G": the trace of core says the rate: leave rate out'),
        ("{trace: {file: t.csv}, jitter: 1ms}", "the trace of core says the delay: leave jitter out"),
        ("{trace: {file: t.csv}, loss: 1%}", "the trace of core says the loss: leave loss out"),
        ("{trace: {file: t.csv}, emulator: kernel}", "unknown key"),
        ("{trace: {file: t.csv, form: csv}}", "unknown key of a trace, write"),
        ("{trace: t.csv}", "is a group of keys"),
        ("{trace: {file: none.csv}}", "none.csv: No such file"),
        ("{trace: {file: t.csv, format: mahimahi}}", "t.csv:1: opportunity"),
        ("{trace: {file: t.csv, from: 9s}}", "t.csv the window from 9s to 4s is empty"),
        ("{trace: {file: t.csv, from: 10}}", 'write a duration as "10ms"'),
        ("{trace: {file: t.mahimahi, after: hold}, delay: 5ms}", "would deliver nothing after its end"),
        ("{trace: {file: out.csv, after: hold}, delay: 5ms}", "ends with an outage that would hold for ever"),
        ("{trace: {file: long.csv}, delay: 5ms}", "has a mean rate of 1000bit/s"),
        ("{trace: {file: t.csv, to: 10s}}", "t.csv ends at 4s, before its to, 10s: if it was cut off, fetch it again"),
        ("{trace: {file: imported.csv}}", "imported.csv: is not the file that imported.csv.source.yaml tells of"),
        (
            "{trace: {file: b.csv}, delay: 5ms, queue: {priority: {classes: [{name: a}]}}}",
            "priority has a buffer for each class",
        ),
    ],
)
def test_what_is_said_twice_or_cannot_be_is_refused(tmp_path: Path, wan: str, says: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        plan(tmp_path, wan)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_kernels_parts_follow_no_trace(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="the kernel's parts follow no trace"):
        plan(tmp_path, "{trace: {file: t.csv}}", "emulator: kernel\n")


def test_a_running_link_is_not_told_what_its_trace_says(tmp_path: Path) -> None:
    made = plan(tmp_path, "{trace: {file: t.csv}, buffer: 100kB}")
    for words in ({"rate": "1Mbit/s"}, {"delay": "1ms"}, {"jitter": "1ms"}, {"loss": "1%"}):
        with pytest.raises(DescriptionError, match="the trace of core says its"):
            compile_change(made, made.links[0], "forward", wanted(words))
    assert compile_change(made, made.links[0], "forward", wanted({"buffer": "50kB"})).queue is not None
    with pytest.raises(DescriptionError, match="a link has rate"):
        wanted({"trace": "t.csv"})


@pytest.mark.parametrize("kind", generated.KINDS)
def test_a_generated_trace_is_the_same_for_its_seed_and_read_as_it_was_written(kind: str) -> None:
    made = generated.KINDS[kind](7, 20 * SECOND)
    assert made == generated.KINDS[kind](7, 20 * SECOND)
    assert made != generated.KINDS[kind](8, 20 * SECOND)
    traces.check(made, "repeat")
    again = read(writing.csv(made, ("a note",)))
    assert isinstance(again, TraceSteps)
    for column in made.columns:
        assert traces.mean(again, column) == traces.mean(made, column)
        assert traces.bounds(again, column) == traces.bounds(made, column)
    earned = read(writing.mahimahi(made))
    assert abs(traces.mean(earned, "rate") - traces.mean(made, "rate")) < 0.01 * traces.mean(made, "rate")
    assert read(writing.mahimahi(earned)) == earned


@pytest.mark.parametrize("kind", generated.KINDS)
def test_the_library_has_what_the_command_makes(kind: str) -> None:
    done = CliRunner().invoke(trace_command, ["make", kind, "--seed", "1"])
    assert done.output == (Path(__file__).resolve().parents[1] / "library" / f"{kind}.csv").read_text()


def test_a_trace_is_copied_with_its_source_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    context = Context.of({})
    words = ["import", str(tmp_path / "a.csv"), "b.csv", "--licence", "CC0-1.0", "--into", str(tmp_path / "in")]
    assert CliRunner().invoke(trace_command, words, obj=context).exit_code == 0
    assert (tmp_path / "in/b.csv").read_text() == CSV
    beside = (tmp_path / "in/b.csv.source.yaml").read_text()
    assert "licence: CC0-1.0" in beside
    assert "sha256: " in beside
    again = CliRunner().invoke(trace_command, words, obj=context)
    assert again.exit_code == 2
    assert "is there already" in again.output
    for name in ("../b.csv", ".b"):
        assert CliRunner().invoke(trace_command, ["import", str(tmp_path / "a.csv"), name], obj=context).exit_code == 2
    told = CliRunner().invoke(trace_command, ["check", str(tmp_path / "in/b.csv")], obj=context)
    assert told.exit_code == 0
    told = CliRunner().invoke(trace_command, ["check", "--json", str(tmp_path / "in/b.csv")], obj=context)
    assert told.exit_code == 0


def test_a_trace_is_fetched_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        fetched = ["--into", str(tmp_path / "in")]
        done = CliRunner().invoke(trace_command, ["import", f"{url}/a.csv", *fetched], obj=Context.of({}))
        missing = CliRunner().invoke(trace_command, ["import", f"{url}/b.csv", *fetched], obj=Context.of({}))
        monkeypatch.setattr("ewan.labs.commands.trace.MOST", 10)
        large = CliRunner().invoke(trace_command, ["import", f"{url}/a.csv", "c", *fetched], obj=Context.of({}))
        server.shutdown()
    assert done.exit_code == 0, done.output
    assert (tmp_path / "in/a.csv").read_text() == CSV
    assert f"source: {url}/a.csv" in (tmp_path / "in/a.csv.source.yaml").read_text()
    assert (missing.exit_code, large.exit_code) == (2, 2)
    assert "write the URL of a trace" in missing.output
    assert "the most that is fetched" in large.output
