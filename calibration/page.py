"""The report of a calibration: one HTML file with tables and figures, of a host, or of a lab on it.

In: what was measured of the host, and a lab's certificate with its plan. Out: report.html, which needs no server, no
network and no script; figures/*.svg and *.csv beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import jinja2

from ewan.analysis import report as experiment_report
from ewan.analysis.figures import style
from ewan.analysis.figures.style import Drawing
from ewan.calibration import report
from ewan.calibration.envelope import Frontier, LinkDemand
from ewan.calibration.host import figures, link_figures, words
from ewan.calibration.host.calibrations import HostCalibration
from ewan.calibration.host.finding import Finding
from ewan.calibration.host.refusal import least_mtu
from ewan.labs.base import writing
from ewan.labs.base.units.shown import ARROWS, NONE, written
from ewan.labs.plan import Plan
from ewan.labs.record import Certificate, Row

TEMPLATES = Path(__file__).resolve().parent / "templates"
MOST_MARKED = 12
"""Links of a lab that are marked in the envelope."""
FEWEST = 8


@dataclass(frozen=True, slots=True)
class CalibrationPage:
    """The content of the template. `findings`: what was found of the host; `links`: what its links carry, cells in the
    order of `words.COLUMNS`."""

    title: str
    name: str
    warnings: Sequence[str]
    about: Sequence[str]
    rows: Sequence[Mapping[str, str]]
    findings: Sequence[Finding]
    links: Sequence[Sequence[str]]
    remarks: Sequence[str]
    circumstances: Mapping[str, str]
    columns: Sequence[str] = tuple(words.COLUMNS)


def write(directory: Path, page: CalibrationPage, drawings: Sequence[Drawing]) -> Path:
    """Writes the page and its figures into a directory; the page's path. OSError where it cannot."""
    place = directory / "figures"
    place.mkdir(exist_ok=True)
    for drawing in drawings:
        writing.write(place / f"{drawing.name}.svg", drawing.svg)
        writing.write(place / f"{drawing.name}.csv", drawing.csv)
    loader = jinja2.FileSystemLoader([TEMPLATES, experiment_report.TEMPLATES])
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    drawn = [experiment_report.figure(number, each) for number, each in enumerate(drawings, 1)]
    path = directory / "report.html"
    shown = {each.name: getattr(page, each.name) for each in fields(page)}
    writing.write(path, environment.get_template("calibration.html.j2").render(**shown, figures=drawn))
    return path


def of_host(found: HostCalibration) -> tuple[CalibrationPage, list[Drawing]]:
    """The page of a host, and its figures."""
    page = CalibrationPage(
        title="What this host can be trusted with",
        name=f"{found.profile} profile, {found.time}",
        warnings=_without_figures(),
        about=[
            "Timers, processors and paths of this host, and the links that it can make. A run whose links are outside "
            "the envelope is refused."
        ],
        rows=[],
        findings=words.findings(found),
        links=[words.link_row(each) for each in found.links],
        remarks=words.absences(found.absent),
        circumstances=found.circumstances,
    )
    return page, list(_of_host(found, ()))


def _without_figures() -> list[str]:
    why = style.missing()
    return [f"{why[:1].upper()}{why[1:]}."] if why else []


def _of_host(found: HostCalibration, marked: Sequence[tuple[str, LinkDemand]]) -> Iterator[Drawing]:
    if style.missing():
        return
    drawings: list[Drawing | None] = [
        link_figures.heat_map(found.links, marked),
        link_figures.lateness(found.links),
        figures.lateness(found.timers),
        figures.packet_rates(found.paths),
        figures.throughput(found.paths),
    ]
    if found.accuracy is not None:
        more = (link_figures.delays, link_figures.rates, link_figures.spacings)
        drawings[2:2] = [draw(found.accuracy) for draw in more]
    yield from (each for each in drawings if each is not None)


def of_lab(certificate: Certificate, plan: Plan, host: HostCalibration | None) -> tuple[CalibrationPage, list[Drawing]]:
    """The page of a lab, and its figures: how late probes came, and its links in the host's envelope."""
    failed = [row for row in certificate.rows if row.verdict == "outside"]
    warnings = [f"{row.link} {row.direction} {row.quantity} is outside its tolerance: {row.note}" for row in failed[:5]]
    page = CalibrationPage(
        title=f"Lab {certificate.lab}, as deployed",
        name=report.summary(certificate),
        warnings=[*warnings, *_without_figures()],
        about=report.circumstances(certificate),
        rows=[_row(row) for row in certificate.rows],
        findings=[],
        links=[] if host is None else [words.link_row(each) for each in host.links],
        remarks=[],
        circumstances={} if host is None else host.circumstances,
    )
    drawings = [each for each in (delays(certificate),) if each is not None]
    if host is not None:
        drawings += list(_of_host(host, marks(plan, host.links)))
    return page, drawings


def _row(row: Row) -> dict[str, str]:
    _, _, quantity, configured, measured, error, uncertainty, tolerance, verdict, note = report.cells(row)
    parts = row.uncertainty.components if row.uncertainty is not None else {}
    largest = sorted(parts.items(), key=lambda each: -each[1])
    return {
        "where": f"{row.link} {ARROWS.get(row.direction, row.direction)}",
        "quantity": quantity,
        "configured": configured,
        "measured": measured,
        "error": error,
        "uncertainty": uncertainty,
        "tolerance": tolerance,
        "verdict": verdict,
        "kind": "ok" if row.verdict in ("ok", "shown") else "outside",
        "sources": ", ".join(f"{source} {written(value, row.unit, 2)}" for source, value in largest) or NONE,
        "note": note,
    }


def marks(plan: Plan, frontiers: Sequence[Frontier]) -> list[tuple[str, LinkDemand]]:
    """The links of a plan, each by itself, with packets as large as the MTU; of equal ones the first."""
    mtu = least_mtu(plan)
    found: dict[int, tuple[str, LinkDemand]] = {}
    for link in plan.links if frontiers else ():
        rate = link.forward.rate_bps
        found.setdefault(rate, (link.name, LinkDemand(rate, 0, mtu, 1, link.forward.framing)))
    return list(found.values())[:MOST_MARKED]


def delays(certificate: Certificate) -> Drawing | None:
    """A figure of the delays of each link's probes beyond its fastest probe."""
    streams = {
        stream["name"]: stream["quantiles_ns"]
        for result in certificate.probes.get("results", ())
        if result.get("kind") == "delay"
        for stream in result.get("streams", ())
        if len(stream.get("quantiles_ns", ())) >= FEWEST
    }
    configured = {
        f"{row.link} {row.direction}": row.configured for row in certificate.rows if row.quantity == "delay p50"
    }
    told = {name: quantiles for name, quantiles in streams.items() if configured.get(name) is not None}
    if not told:
        return None
    with style.sheet(1, 2.4) as (figure, axes):
        axis = axes[0]
        for number, (name, quantiles) in enumerate(list(told.items())[: style.MOST_LINES]):
            base = float(configured[name] or 0)
            axis.step(
                [max(value - base, 100) / 1_000 for _, value in quantiles], [share for share, _ in quantiles],
                where="post", color=style.COLOURS[number], linestyle=style.DASHES[number], label=name,
            )  # fmt: skip
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_ylim(0, 1.03)
        axis.set_xlabel("later than configured (µs)")
        axis.set_ylabel("share of packets")
        style.legend(figure, axes)
        text = style.svg(figure)
    rows = [
        {"link": name, "share": share, "delay_ns": value, "configured_ns": configured[name]}
        for name, quantiles in told.items()
        for share, value in quantiles
    ]
    caption = "One-way delay of the probes less the configured one, with the path through the network stacks."
    return Drawing("lab-delays", "How late probes came", caption, text, style.csv(rows))
