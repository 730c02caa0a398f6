"""The output of ping (iputils, BusyBox, GNU inetutils; IPv4 and IPv6) as a row for each echo request. Pure.

In: what a command printed, with the options of its calls of ping. Out: rows of `pings`; totals as ping counts them.
ping prints a reply when it comes, and nothing for a request without one: that is known from the numbers. When a request
was sent is the stamp of `-D`, which is put on the reply, less the RTT; without stamps it is the start of the command
and one interval for each request before: the mean one, where iputils says how long it sent. Replies are shown rounded:
iputils prints 3 digits up to 1 ms, 10 us steps up to 10 ms, 0.1 ms steps up to 100 ms, and whole ms above.
"""

from __future__ import annotations

import getopt
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import zip_longest

from ewan.generator.readers.call import Call
from ewan.generator.readers.reader import NUMBER, CommandOutput, Reader, ReaderResult, lines
from ewan.generator.rows import Row
from ewan.generator.rows import number as number_of
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND, scale

PROGRAMS = ("ping", "ping4", "ping6", "inetutils-ping")
MOST_ROWS = 1 << 20
STAMPED, COUNTED = "stamp", "count"
"""The ways in which a request's time is known."""

_US_NS = scale("time")["us"]
_NUMBERS = 1 << 16
"""A sequence number has 16 bits, and goes on from 0."""
_DEFAULT_INTERVAL_S = 1.0
_OPTIONS = "h?4bRT:6F:N:aABc:CdDe:fi:I:l:Lm:M:nOp:qQ:rs:S:t:UvVw:W:"
_HEADER = re.compile(r"PING ([^\s(]*) ?\((.*?)\)(:?)(?: from .*?:)? (\d{1,10})(\(\d+\))? (?:data )?bytes")
_REPLY = re.compile(
    r"(?:\[(\d{1,10})\.(\d{6})\] )?\d+ bytes from .+?: (?:icmp_)?seq=(\d{1,10})(?: ident=\d+)? (?:ttl|hlim)=(\d{1,10})"
    rf"(?: time(=|<)\s?({NUMBER}) ?ms)?(.*)"
)
_NO_REPLY = re.compile(r"(?:\[\d+\.\d+\] )?(?:no answer yet for |From .* )icmp_seq=(\d{1,10})\b")
_COUNT = r"(\d{1,12})"
_TOTALS = re.compile(
    rf"{_COUNT} packets transmitted, {_COUNT} (?:packets )?received(?:, \+?{_COUNT} duplicates)?"
    rf"(?:.*, time {_COUNT}ms)?"
)
_TIMES = re.compile(rf"(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev))? = ({NUMBER})/({NUMBER})/({NUMBER})")


class _Section:
    """The output of one ping, from its headline to its statistics."""

    def __init__(self, target: str, size_bytes: int, first: int) -> None:
        self.target, self.size_bytes, self.first = target, size_bytes, first
        self.replies: list[Row] = []
        self.stamps: dict[int, int] = {}
        self.last = first - 1
        self.totals: tuple[int, int, int] | None = None
        self.mean_ns: int | None = None
        self.lasted_ns: int | None = None

    def whole(self, number: int) -> int:
        """A sequence number of 16 bits in full: the nearest to the last one."""
        turns = round((self.last - number) / _NUMBERS)
        found = number + max(turns, 0) * _NUMBERS
        self.last = max(self.last, found)
        return found

    def take(self, line: str) -> None:
        """Takes a line; a line about neither a packet nor all of them is passed over."""
        if match := _REPLY.match(line):
            self._reply(match)
        elif match := _NO_REPLY.match(line):
            self.whole(int(match[1]))
        elif match := _TOTALS.match(line):
            self.totals = int(match[1]), int(match[2]), int(match[3] or 0)
            self.lasted_ns = None if match[4] is None else int(match[4]) * NS_PER_MS
        elif match := _TIMES.match(line):
            self.mean_ns = _ns(match[2])

    def _reply(self, match: re.Match[str]) -> None:
        seconds, micro, number, ttl, sign, time, rest = match.groups()
        whole = self.whole(int(number))
        rtt_ns = _ns(time) if sign == "=" else None
        self.replies.append(
            {"number": whole, "rtt_ns": rtt_ns, "ttl": int(ttl), "answered": True, "duplicate": "DUP!" in rest}
        )
        if seconds is not None and rtt_ns is not None and "DUP!" not in rest:
            self.stamps[whole] = int(seconds) * NS_PER_SECOND + int(micro) * _US_NS - rtt_ns

    @property
    def quiet(self) -> bool:
        """Return whether no single packet is printed, though some came back."""
        return not self.replies and self.totals is not None and self.totals[1] > 0

    @property
    def sent(self) -> int:
        """The number of requests sent; for a ping that was ended before its statistics, the number of those that it
        printed."""
        return self.totals[0] if self.totals is not None else self.last - self.first + 1

    def interval_ns(self, asked_ns: int) -> int:
        """The mean from one request to the next. Ping waits a little longer than it is asked to; iputils prints at its
        end the time between the first request and the last one."""
        if self.lasted_ns is None or self.sent < 2:
            return asked_ns
        return max(asked_ns, self.lasted_ns // (self.sent - 1))

    @property
    def received(self) -> int:
        """The number of requests that were answered."""
        if self.totals is not None:
            return self.totals[1]
        return len({row["number"] for row in self.replies})


def read(printed: CommandOutput) -> ReaderResult:
    """Rows of `pings` and the totals of all pings of a command together."""
    sections, problem = _sections(printed.text), None
    calls: Sequence[Call | None] = printed.calls if len(printed.calls) == len(sections) else ()
    rows: list[Row] = []
    for section, call in zip_longest(sections, calls):
        room = MOST_ROWS - len(rows)
        if section.quiet:
            problem = problem or "its options keep single packets silent: leave -q and -f out to have them"
        elif section.sent > room:
            problem = f"more than {MOST_ROWS} packets: the rest is left out"
        else:
            rows += _timed(section, call, printed)
    if not sections and problem is None:
        problem = "its output is none of ping's"
    return ReaderResult({"pings": rows}, _totals(sections), problem)


def _sections(text: str) -> list[_Section]:
    result: list[_Section] = []
    for line in lines(text):
        if match := _HEADER.match(line):
            name, address, colon, size, whole = match.groups()
            # iputils leaves the name out where the system's resolver gives none to it.
            result.append(_Section(name or address, int(size), 0 if colon and whole is None else 1))
        elif result:
            result[-1].take(line)
    return result


def _timed(section: _Section, call: Call | None, printed: CommandOutput) -> Iterator[Row]:
    """The requests in the order of their numbers, with the time when each was sent, as far as that is known."""
    interval_ns = None if call is None else _interval_ns(call)
    stamps: dict[int, int] = {}
    if printed.t0_unix_ns is not None:
        stamps = {number: time_ns - printed.t0_unix_ns for number, time_ns in section.stamps.items()}
    known = dict(stamps)
    if not known and interval_ns is not None:
        interval_ns = section.interval_ns(interval_ns)
    if not known and call is not None and call.at_once:
        known = {section.first: printed.started_ns}
    order = sorted(known)
    answered = {row["number"] for row in section.replies}
    there = range(section.first, section.first + section.sent)
    silent: list[Row] = [
        {"number": each, "answered": False, "duplicate": False} for each in there if each not in answered
    ]
    for row in sorted([*section.replies, *silent], key=lambda each: number_of(each, "number")):
        number = number_of(row, "number")
        time_ns, timed = stamps.get(number), STAMPED
        if time_ns is None:
            time_ns, timed = _counted(number, order, known, interval_ns), COUNTED
        base: Row = {"target": section.target, "size_bytes": section.size_bytes, "time_ns": time_ns}
        yield {**base, "timed": None if time_ns is None else timed, **row}


def _counted(number: int, order: list[int], known: dict[int, int], interval_ns: int | None) -> int | None:
    """The time of a request, counted from the nearest earlier one whose time is known, else from the first one
    after."""
    if not order or interval_ns is None:
        return None
    near = order[max(bisect_right(order, number) - 1, 0)]
    return known[near] + (number - near) * interval_ns


def _interval_ns(call: Call) -> int | None:
    """The interval between requests, by the options; None where it depends on the replies."""
    try:
        options, _ = getopt.gnu_getopt(list(call.arguments), _OPTIONS)
        given = dict(options)
        if "-A" in given or "-f" in given:
            return None
        return round(float(given.get("-i", _DEFAULT_INTERVAL_S)) * NS_PER_SECOND)
    except (getopt.GetoptError, ValueError, OverflowError):
        return None


def _totals(sections: Sequence[_Section]) -> Row:
    if not sections:
        return {}
    means = [(each.mean_ns, each.received) for each in sections if each.mean_ns is not None]
    answers = sum(count for _, count in means)
    duplicates = sum(
        each.totals[2] if each.totals is not None else sum(row["duplicate"] is True for row in each.replies)
        for each in sections
    )
    return {
        "target": ", ".join(dict.fromkeys(each.target for each in sections)),
        "sent_packets": sum(each.sent for each in sections),
        "received_packets": sum(each.received for each in sections),
        "duplicate_packets": duplicates,
        "rtt_mean_ns": sum(mean_ns * count for mean_ns, count in means) / answers if answers else None,
    }


def _ns(milliseconds: str) -> int:
    return int(Decimal(milliseconds) * NS_PER_MS)


READER = Reader("ping", PROGRAMS, read)
