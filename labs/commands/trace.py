"""`ewan trace`: files of a link's rate, delay, loss and buffer over time: looked at, converted, made, imported."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click

from ewan.labs import rundir, traces
from ewan.labs.base import reading as files
from ewan.labs.base import writing as written
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import Duration, Fraction, Rate, Size, UnitError
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context
from ewan.labs.traces import generated, reading, writing

MOST = 16 << 20
"""Bytes of a trace that is read or fetched."""
PATIENCE_S = 30
_COLUMN = {"rate": Rate, "delay": Duration, "loss": Fraction, "buffer": Size}

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(reading.FORMATS),
    help="the format of the file (default: found from its content)",
)


@click.group("trace")
def trace_command() -> None:
    """Traces: a link's rate, delay, loss and buffer over time, from a file.

    \b
    ewan trace check lte.csv
    ewan trace convert lte.csv --to mahimahi > lte.mahimahi
    ewan trace make starlink --seed 1 --length 60s > starlink.csv
    ewan trace import https://example.org/lte.csv lte --licence CC-BY-4.0
    """


def _read(file: Path, form: reading.Format | None) -> tuple[traces.Trace, reading.Format]:
    try:
        text = files.read_text(file, MOST)
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}: write the path of a trace") from None
    return _parsed(file.name, text, form), form or reading.detect(text)


def _parsed(name: str, text: str, form: reading.Format | None) -> traces.Trace:
    try:
        return reading.parse(name, text, form)
    except traces.TraceError as error:
        raise Refused(str(error)) from None


class ColumnBounds(Struct):
    """The mean and the bounds of a column of a trace, in the unit that the column's name says."""

    mean: float
    min: float
    max: float


class TraceCheck(Struct, kw_only=True):
    """A trace: its format, length and columns. It has `rows`, or `opportunities` to send a packet."""

    file: str
    format: str
    rows: int | None = None
    opportunities: int | None = None
    length_ns: int
    columns: dict[str, ColumnBounds]


@trace_command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@format_option
@json_option(lambda: TraceCheck)
@pass_context
@guarded
def check_command(context: Context, /, file: Path, form: reading.Format | None, as_json: bool) -> None:
    """Show the format, rows and length of a trace, and the mean and the bounds of each column."""
    trace, found = _read(file, form)
    try:
        traces.check(trace, "repeat")
    except traces.TraceError as error:
        raise Refused(f"{file.name} {error}") from None
    rows = len(trace.rows) if isinstance(trace, traces.TraceSteps) else sum(count for _, count in trace.instants)
    what = "rows" if isinstance(trace, traces.TraceSteps) else "opportunities"
    if as_json:
        columns = {
            traces.COLUMNS[column]: ColumnBounds(traces.mean(trace, column), *traces.bounds(trace, column))
            for column in trace.columns
        }
        counted = {what: rows}
        context.reporter.emit(
            TraceCheck(file=file.name, format=found, length_ns=trace.end_ns, columns=columns, **counted)
        )
        return
    say = context.reporter.console.print
    say(f"{file.name}  {found}  {rows} {what}  {Duration(trace.end_ns)}", soft_wrap=True)
    for column in trace.columns:
        kind, (least, most) = _COLUMN[column], traces.bounds(trace, column)
        within = " in 100 ms" if isinstance(trace, traces.Opportunities) else ""
        mean = kind(traces.mean(trace, column))
        say(f"{column:6}  mean {mean}  min {kind(least)}  max {kind(most)}{within}", soft_wrap=True)


@trace_command.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "to", type=click.Choice(("csv", "mahimahi")), required=True, help="the format to write")
@format_option
@guarded
def convert_command(file: Path, to: str, form: reading.Format | None) -> None:
    """Write a trace in another format to standard output.

    mahimahi has no delay, loss or buffer. Its opportunities become the rate of each 100 ms in CSV.
    """
    trace, _ = _read(file, form)
    try:
        click.echo(writing.csv(trace) if to == "csv" else writing.mahimahi(trace), nl=False)
    except traces.TraceError as error:
        raise Refused(f"{file.name} {error}") from None


@trace_command.command("make")
@click.argument("kind", type=click.Choice(list(generated.KINDS)))
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="seed of the random numbers"
)
@click.option("--length", default="60s", show_default=True, help="length of the trace, from 1s to 1h")
@guarded
def make_command(kind: str, seed: int, length: str) -> None:
    """Generate a trace of a kind of link from a seed, and write it to standard output as CSV."""
    try:
        length_ns = Duration.parse(length, Duration.parse("3600s", traces.LONGEST_NS).ns).ns
    except UnitError as error:
        raise Refused(f'--length "{length}": {error}') from None
    if length_ns < Duration.parse("1s").ns:
        raise Refused(f'--length "{length}": write at least "1s"')
    made = generated.KINDS[kind](seed, length_ns)
    note = f"ewan trace make {kind} --seed {seed} --length {Duration(length_ns)}: generated, not measured"
    click.echo(writing.csv(made, (note,)), nl=False)


@trace_command.command("import")
@click.argument("source")
@click.argument("name", required=False)
@click.option("--licence", default="unknown", show_default=True, help="the licence of the trace")
@renamed_option(
    "--output",
    "-o",
    "into",
    old="--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("traces"),
    show_default=True,
    help="the folder for the trace",
)
@format_option
@pass_context
@guarded
def import_command(
    context: Context,
    /,
    source: str,
    name: str | None,
    licence: str,
    into: Path,
    form: reading.Format | None,
) -> None:
    """Copy a trace from a URL (http, https) or a file into a folder, with NAME.source.yaml beside it."""
    content = _fetched(source) if urlsplit(source).scheme in ("http", "https") else _copied(Path(source))
    given = Path(name or Path(urlsplit(source).path).name)
    if not given.name or given.name != str(given) or given.name.startswith("."):
        raise Refused(f'NAME "{given}": write a file\'s name, like "lte.csv"')
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{source}: is not text in UTF-8: name a trace") from None
    _parsed(given.name, text, form)
    about = {
        "source": source,
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": licence,
        "date": datetime.now(UTC).date().isoformat(),
    }
    import yaml

    target, beside = into / given.name, into / f"{given.name}{traces.SOURCE_SUFFIX}"
    rundir.check(into)
    try:
        into.mkdir(parents=True, exist_ok=True)
        written.write_new(target, content)
        written.write(beside, yaml.safe_dump(about, sort_keys=False))
    except FileExistsError:
        raise Refused(f"{target}: is there already: write another NAME") from None
    except OSError as error:
        raise Refused(written.trouble(error, into, "name another folder with --output")) from None
    context.reporter.console.print(f"{target}  {beside}", soft_wrap=True)


def _copied(file: Path) -> bytes:
    try:
        return files.read_bytes(file, MOST)
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}: write a URL or the path of a trace") from None


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            content: bytes = answer.read(MOST + 1)
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise Refused(f"{url}: {getattr(error, 'reason', None) or error}: write the URL of a trace") from None
    if len(content) > MOST:
        raise Refused(f"{url}: is larger than {MOST >> 20} MiB, the most that is fetched")
    return content
