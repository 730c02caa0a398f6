"""The outputs of traceroute, tcptraceroute, tracepath and mtr as a row for each probe, or for each hop. Pure.

In: what a command printed. Out: rows of `hops`. The traceroutes (Linux, BusyBox, GNU inetutils, tcptraceroute) and
tracepath print each probe, and so does `mtr --raw`; `mtr --report`, `--csv` and `--json` print each hop's statistics,
which become one row of several packets. Times are as printed: most to 1 us, `mtr --report` to 0.1 ms.
"""

from __future__ import annotations

import csv
import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

import orjson

from ewan.generator.readers.call import Call
from ewan.generator.readers.reader import NUMBER, CommandOutput, Reader, ReaderResult, lines
from ewan.generator.rows import Row
from ewan.generator.rows import text as cell
from ewan.labs.base.units import NS_PER_MS, scale

TRACEROUTE = ("traceroute", "traceroute6", "traceroute.db", "inetutils-traceroute", "tcptraceroute", "tcptraceroute.mt")
TRACEPATH = ("tracepath", "tracepath6")
MTR = ("mtr", "mtr-tiny")
MOST_ROWS = 1 << 20

_US_NS = scale("time")["us"]
_PERCENT = 100
_HEADLINE = re.compile(r"traceroute to (\S+)")
_HOP = re.compile(r"\s*(\d{1,3})\s+(\S.*)")
_PART = re.compile(
    rf"(?P<lost>\*)|(?P<time>{NUMBER}) ?ms\b|\((?P<address>[^)\s]+)\)|[<\[][^>\]]*[>\]]|!\S*|(?P<host>\S+)"
)
_TRACEPATH = re.compile(
    r"\s*(\d{1,6})\??:\s+(?:(no reply)|(\S+)(?: \(([^)]+)\))?\s+(?:asymm\s+\d+\s+)?(\d{1,12}(?:\.\d{1,12})?)ms)"
)
_TRACEPATH_WORDS = re.compile(r"Resume: pmtu|\?: \[LOCALHOST\]")
_MTR_HEAD = re.compile(r"HOST: .*Loss%\s+Snt\s+Last\s+Avg\s+Best\s+Wrst\s+StDev\s*$")
_MTR_HOP = re.compile(
    r"\s*(\d+)\.\|?(?:--)?\s+(?:AS\S+\s+)?(\S+)(?: \(([^)]+)\))?\s+([\d.]+)%?" + r"\s+([\d.]+)" * 6 + r"\s*$"
)
_MTR_RAW = re.compile(r"([xhpd]) (\d{1,6}) (\S+)(?: (\d{1,12}))?")


def traceroute(printed: CommandOutput) -> ReaderResult:
    """Rows of the traceroutes, one for each probe; a probe without an answer has no address."""
    rows, target, counts = [], _target(printed.calls), Counter[tuple[str, int]]()
    for line in lines(printed.text):
        if match := _HEADLINE.match(line):
            target = match[1]
        elif match := _HOP.match(line):
            rows += list(_probes(int(match[1]), match[2], target, counts))
    return _reading(rows, target, "its output is none of traceroute's")


def _probes(ttl: int, text: str, target: str, counts: Counter[tuple[str, int]]) -> Iterator[Row]:
    host, address = None, None
    for part in _PART.finditer(text):
        if part["host"] is not None:
            host, address = part["host"], _address(part["host"])
        elif part["address"] is not None:
            address = _address(part["address"])
        elif part["lost"] is not None or part["time"] is not None:
            counts[target, ttl] += 1
            base: Row = {"target": target, "ttl": ttl, "probe": counts[target, ttl]}
            if part["lost"] is not None:
                yield _probe(base, None, None, None)
            else:
                yield _probe(base, host, address, _ns(part["time"]))


def tracepath(printed: CommandOutput) -> ReaderResult:
    """Rows of tracepath, one for each probe that it prints."""
    rows, target, counts = [], _target(printed.calls), Counter[int]()
    for line in lines(printed.text):
        if match := _TRACEPATH.match(line):
            ttl, lost, host, address, time = match.groups()
            counts[int(ttl)] += 1
            base: Row = {"target": target, "ttl": int(ttl), "probe": counts[int(ttl)]}
            host = None if host == "???" else host
            rtt_ns = None if lost else _ns(time)
            rows.append(_probe(base, host, _address(address or host), rtt_ns))
    known = _TRACEPATH_WORDS.search(printed.text)
    return _reading(rows, target, "its output is none of tracepath's", empty=known is not None)


def mtr(printed: CommandOutput) -> ReaderResult:
    """Rows of `mtr --report`, `--csv` and `--json`, one for each hop; of `--raw`, one for each probe."""
    target, text = _target(printed.calls), printed.text
    if text.lstrip().startswith("{"):
        rows = _mtr_json(text, target)
    elif text.startswith("Mtr_Version,"):
        rows = _mtr_csv(text, target)
    elif _MTR_RAW.match(text):
        rows = _mtr_raw(text, target)
    elif any(_MTR_HEAD.match(line) for line in lines(text)):
        rows = [_hop(target, *match.groups()[:-1]) for match in map(_MTR_HOP.match, lines(text)) if match]
        return _reading(rows, target, "", empty=True)
    else:
        return ReaderResult(problem="its output is no report of mtr's: write mtr --report, without -o")
    return _reading(rows, target, "its output is not whole")


def _mtr_json(text: str, target: str) -> list[Row]:
    keys = ("count", "host", "Loss%", "Snt", "Last", "Avg", "Best", "Wrst")
    try:
        report = orjson.loads(text)["report"]
        hops = [[str(hub[key]) for key in keys] for hub in report["hubs"]]
        return [_hop(str(report["mtr"]["dst"]) or target, ttl, host, None, *rest) for ttl, host, *rest in hops]
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return []


def _mtr_csv(text: str, target: str) -> list[Row]:
    keys = ("Hop", "Ip", "Loss%", "Snt", "Last", "Avg", "Best", "Wrst")
    try:
        rows = [[line[key] for key in keys] for line in csv.DictReader(lines(text))]
        return [_hop(target, ttl, host, None, *rest) for ttl, host, *rest in rows]
    except (ValueError, KeyError, TypeError, ArithmeticError, csv.Error):
        return []


def _hop(
    target: str, ttl: str, host: str, address: str | None, loss: str, sent: str, last: str, mean: str, *rest: str
) -> Row:
    """Statistics of one hop; of several packets each time is null where none was answered. `last` is one of these."""
    least, most = rest[:2]
    count = int(sent)
    received = round(count * (1 - float(loss) / _PERCENT))
    host_or_none = None if host == "???" else host
    return {
        "target": target,
        "ttl": int(ttl),
        "host": host_or_none,
        "address": _address(address or host_or_none),
        "sent_packets": count,
        "received_packets": received,
        "rtt_ns": _ns(mean) if received else None,
        "rtt_min_ns": _ns(least) if received else None,
        "rtt_max_ns": _ns(most) if received else None,
    }


def _mtr_raw(text: str, target: str) -> list[Row]:
    """Lines: `x HOP SEQUENCE` sent, `p HOP MICROSECONDS SEQUENCE` answered, `h HOP ADDRESS`, `d HOP NAME`."""
    hosts: dict[int, tuple[str, str | None]] = {}
    answers: dict[str, int] = {}
    sent: list[tuple[int, str]] = []
    for match in map(_MTR_RAW.match, lines(text)):
        if match is None:
            continue
        kind, hop, value, sequence = match.groups()
        if kind == "x":
            sent.append((int(hop), value))
        elif kind == "p" and sequence is not None:
            answers[sequence] = int(value) * _US_NS
        elif kind == "h":
            hosts[int(hop)] = (value, _address(value))
    # mtr probes beyond the target at first: all of these hops are answered by the target itself.
    again = (hop for hop, host in hosts.items() if any(hop < other and host == hosts[other] for other in hosts))
    last = min(again, default=None)
    rows, counts = [], Counter[int]()
    for hop, sequence in sent:
        if last is not None and hop > last:
            continue
        counts[hop] += 1
        base: Row = {"target": target, "ttl": hop + 1, "probe": counts[hop]}
        host, address = hosts.get(hop, (None, None)) if sequence in answers else (None, None)
        rows.append(_probe(base, host, address, answers.get(sequence)))
    return rows


def _probe(base: Row, host: str | None, address: str | None, rtt_ns: int | None) -> Row:
    received = int(rtt_ns is not None)
    return {**base, "host": host, "address": address, "sent_packets": 1, "received_packets": received, "rtt_ns": rtt_ns}


def _reading(rows: list[Row], target: str, problem: str, empty: bool = False) -> ReaderResult:
    """`empty`: an output without hops is one, too."""
    why = None if rows or empty else problem
    if len(rows) > MOST_ROWS:
        rows, why = rows[:MOST_ROWS], f"more than {MOST_ROWS} rows: the rest is left out"
    totals: Row = {"target": ", ".join(dict.fromkeys(cell(row, "target") for row in rows)) or target}
    return ReaderResult({"hops": rows}, totals, why)


def _target(calls: Iterable[Call]) -> str:
    """The last word of the first call that is no option and no number, which is a port or a size."""
    for call in calls:
        words = [word for word in call.arguments if not word.startswith("-") and not word.isdigit()]
        return words[-1] if words else ""
    return ""


def _address(text: str | None) -> str | None:
    """The text where it is an address, without its zone."""
    try:
        return None if text is None else str(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        return None


def _ns(milliseconds: str) -> int:
    return int(Decimal(milliseconds) * NS_PER_MS)


READERS = (
    Reader("traceroute", TRACEROUTE, traceroute),
    Reader("tracepath", TRACEPATH, tracepath),
    Reader("mtr", MTR, mtr),
)
