"""`ewan lab capture`: packets at interfaces, or at the sides of links, of a lab that is up: a list, a file,
Wireshark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from ewan.labs.base import ownership
from ewan.labs.commands.errors import Incomplete, Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import lab_option, pass_context, renamed_option
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context

if TYPE_CHECKING:
    from ewan.labs.capture.words import Bounds, CaptureCounts
    from ewan.labs.runtime.base import OpenCapture

PIPE = "-"
MOST = "1GB"
"""The limit of a file where --limit is not given."""
ENDED = {
    "signal": "",
    "full": ": the file has the size that --limit allows",
    "packets": ": as many as --count says",
    "time": ": for as long as --for says",
    "reader": ": the reader has gone",
    "lost": ": a machine was lost",
}


@click.command("capture")
@lab_option
@renamed_option(
    "-o",
    "-w",
    "--output",
    "file",
    old="--write",
    metavar="FILE",
    help="into this file, as pcapng; - is standard output",
)
@click.option("--wireshark", is_flag=True, help="show it in Wireshark while it goes on")
@click.option("-c", "--count", metavar="N", type=click.IntRange(1), help="end after so many packets")
@renamed_option(
    "--limit",
    "size",
    old="--size",
    metavar="SIZE",
    help='end when the file has so much, "100MB" (default: 1GB of a FILE)',
)
@click.option("--for", "longest", metavar="TIME", help='end after so long, "10s"')
@click.option("-s", "--snap", metavar="SIZE", help='keep so much of each packet, "96B" (default: all)')
@click.argument("where", metavar="NODE[:INTERFACE]|LINK[:SIDE]")
@click.argument("words", nargs=-1, metavar="[FILTER]")
@guarded
@pass_context
def capture_command(
    context: Context,
    lab: str | None,
    file: str | None,
    wireshark: bool,
    count: int | None,
    size: str | None,
    longest: str | None,
    snap: str | None,
    where: str,
    words: tuple[str, ...],
) -> None:
    """Show or save the packets of a node or of a link until Ctrl-C, with time stamps in ns by the links' clock.

    INTERFACE may be the link that ends there. SIDE is one of the link's two nodes, or forward or backward: what goes
    that way, once where it enters the link and once where it leaves. FILTER is written as for tcpdump.

    \b
    ewan lab capture left1
    ewan lab capture r1:core tcp port 80 -w web.pcapng
    ewan lab capture core:forward --wireshark
    ewan lab capture left1 -w - | wireshark -k -i -
    """
    from ewan.labs.capture import bpf, points
    from ewan.labs.capture.words import CaptureRequest

    if wireshark and file is not None:
        raise Refused("--wireshark shows what -w would write: write one of them")
    if wireshark and shutil.which("wireshark") is None:
        raise Refused("wireshark is not installed: apt install wireshark, or keep the packets with -w FILE")
    if file == PIPE and sys.stdout.isatty():
        raise Refused("-w - writes pcapng to standard output, which is a terminal: add | wireshark -k -i -")
    bounds = _bounds(file, count, size, longest, snap)
    program = bpf.compiled(" ".join(words))
    as_root(context)
    labs = context.live()
    name = which(labs, lab)
    taps = points.taps(labs.load(name).plan, where)
    piped = wireshark or file is None
    wanted = CaptureRequest(tuple(taps), bounds, program, PIPE if piped or file is None else file)
    with _ended_by_signals(labs.capture(name, wanted, piped)) as capture:
        if wireshark:
            counts = _in_wireshark(context.environment, capture)
        elif file is None:
            counts = _listed(capture)
        else:
            counts = capture.wait()
    if file not in (None, PIPE):
        _give_back(file, context.environment)
    _summary(context, counts, file if file != PIPE else None)


def _bounds(file: str | None, count: int | None, size: str | None, longest: str | None, snap: str | None) -> Bounds:
    from ewan.labs.base.units import NS_PER_DAY, Duration, Size, UnitError
    from ewan.labs.capture.bpf import SNAP_BYTES
    from ewan.labs.capture.words import UNBOUNDED, Bounds

    def read(option: str, text: str | None, parse: Callable[[str], Any]) -> Any:
        try:
            return None if text is None else parse(text)
        except UnitError as error:
            raise Refused(f'{option} "{text}": {error}') from None

    kept, most = read("--snap", snap, Size.parse), read("--limit", size, Size.parse)
    lasting = read("--for", longest, lambda text: Duration.parse(text, NS_PER_DAY))
    if kept is not None and not 14 <= kept.bytes <= SNAP_BYTES:
        raise Refused(f'--snap "{snap}": write a size of 14B to {SNAP_BYTES}B')
    if most is not None and most.bytes < 1000:
        raise Refused(f'--limit "{size}": the head of a file already takes more: write at least 1kB')
    if lasting is not None and lasting.ns <= 0:
        raise Refused(f'--for "{longest}": write a time above 0, "10s"')
    unsaid = Size.parse(MOST).bytes if file not in (None, PIPE) else UNBOUNDED
    return Bounds(
        snap_bytes=SNAP_BYTES if kept is None else kept.bytes,
        most_bytes=unsaid if most is None else most.bytes,
        packets=count,
        longest_ns=None if lasting is None else lasting.ns,
    )


@contextmanager
def _ended_by_signals(capture: OpenCapture) -> Iterator[OpenCapture]:
    """Ctrl-C and its like ask it to end meanwhile, and what it has by then is whole."""
    from ewan.labs.base.interrupt import SIGNALS

    before = {number: signal.signal(number, lambda *_: capture.end()) for number in SIGNALS}
    try:
        yield capture
    finally:
        capture.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _listed(capture: OpenCapture) -> CaptureCounts:
    """A line for each packet on standard output; a reader of these that goes away ends the capture."""
    from ewan.labs.capture import reading

    try:
        for line in reading.shown(capture.stream):
            print(line, flush=True)
    except BrokenPipeError:
        capture.end()
        # Python would complain of what it could not write once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    capture.stream.close()
    return capture.wait()


def _in_wireshark(environment: Mapping[str, str], capture: OpenCapture) -> CaptureCounts:
    """Wireshark reads it; when that is closed, the capture ends. Under sudo it runs as who called sudo."""
    found = ownership.caller(environment)
    user, group = found or (None, None)
    command = ["wireshark", "-k", "-i", PIPE]
    try:
        shown = subprocess.Popen(command, stdin=capture.stream, start_new_session=True, user=user, group=group)
    except OSError as error:
        raise Refused(f"wireshark cannot be started ({error.strerror}): keep the packets with -w FILE") from None
    capture.stream.close()
    shown.wait()
    capture.end()
    return capture.wait()


def _give_back(file: str, environment: Mapping[str, str]) -> None:
    from pathlib import Path

    from ewan.labs.base import ownership

    with suppress(OSError):
        if Path(file).is_file():
            ownership.give_back([Path(file)], environment)


def _summary(context: Context, counts: CaptureCounts, file: str | None) -> None:
    """Print the packet counts in a line on standard error, so that they do not mix with captured packets."""
    words = f"{counts['seen']} packets seen, {counts['kept']} kept, {counts['dropped']} dropped{ENDED[counts['end']]}"
    context.reporter.tell(words if file is None else f"{words}  {file}")
    if counts["dropped"]:
        context.reporter.warn("packets came faster than they were taken: write a filter, or a shorter --snap")
    if lost := counts.get("lost"):
        raise Incomplete(f"{'; '.join(lost)}: what it had captured last is missing")
