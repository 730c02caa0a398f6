"""Certificates for people and for files: table rows of text, and JSON.

In: a certificate. Out: cells that a front end lays out (`sheet`), one line that sums up (`summary`), a file (`write`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ewan.calibration.hints import named
from ewan.calibration.spinner import CHANGED
from ewan.labs.base import writing
from ewan.labs.base.codec import replace
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.reading import read_bytes
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import ARROWS, NONE, about, written
from ewan.labs.record import Certificate, Emulating, MachineFacts, Row, Verdict, from_json, to_json

HEADINGS = ("link", "direction", "quantity", "configured", "measured", "error", "U", "tolerance", "verdict", "note")
"""The headings of `cells`."""

COLUMNS = ("link", "quantity", "configured", "measured", "error", "U", "tolerance", "verdict", "note")
MANY_ROWS = 60
DIGITS = 6
"""Significant digits of what was configured and measured."""
ALLOWED = " †"
"""The mark of an uncertainty, a part of which the tolerance has room for."""
ALLOWED_MEANING = (
    "The tolerance has room for a part of U, which the verdict does not count a second time "
    "(docs/explanation/verification.md)."
)


def sheet(certificate: Certificate) -> tuple[list[list[str]], list[str]]:
    """Rows for a terminal, in the order of `COLUMNS`, and the notes that they refer to by number.

    Where there are many links, those that are in order are put together: a row a quantity, with the worst error.
    """
    rows = list(certificate.rows)
    notes: dict[str, int] = {}
    drawn = []
    if len(rows) > MANY_ROWS:
        fine = [row for row in rows if row.verdict in ("ok", "shown")]
        missing = [row for row in rows if row.verdict in ("not measured", "not decidable")]
        rows = [row for row in rows if row.verdict == "outside"]
        drawn += [_together(same) for same in _grouped(fine, lambda row: row.quantity)]
        for same in _grouped(missing, lambda row: row.quantity + row.note):
            rows.append(same[0] if len(same) == 1 else replace(same[0], link=f"{len(same)}", direction=""))
    for row in rows:
        number = str(notes.setdefault(row.note, len(notes) + 1)) if row.note else ""
        link = f"{row.link} {ARROWS.get(row.direction, row.direction)}"
        drawn.append([link, *cells(row)[2:-1], number])
    return drawn, list(notes)


def legend(certificate: Certificate) -> str:
    """Return the meaning of the mark behind some uncertainties; empty where no row has it."""
    return f"{ALLOWED.strip()} {ALLOWED_MEANING}" if any(_is_allowed(row) for row in certificate.rows) else ""


MAIN = ("rate", "base RTT", "TCP goodput")
"""The quantities that a reader asks for first."""
MAIN_COLUMNS = ("quantity", "of", "configured", "measured", "tolerance", "verdict")


def main_rows(certificate: Certificate) -> list[list[str]]:
    """The first row of each of `MAIN`, then all that are not within tolerance, as cells of `MAIN_COLUMNS`."""
    first = {row.quantity: row for row in reversed(certificate.rows) if row.quantity in MAIN}
    wanted = [first[name] for name in MAIN if name in first]
    wanted += [row for row in certificate.rows if row.verdict not in ("ok", "shown") and row not in wanted]
    shown = []
    for row in wanted:
        link, direction, quantity, configured, measured, _, _, tolerance, verdict, _ = cells(row)
        shown.append([quantity, f"{link} {ARROWS.get(direction, direction)}", configured, measured, tolerance, verdict])
    return shown


def _grouped(rows: list[Row], key: Callable[[Row], str]) -> Iterator[list[Row]]:
    """Rows with the same key, in the order in which the keys first come."""
    for wanted in dict.fromkeys(map(key, rows)):
        yield [row for row in rows if key(row) == wanted]


def _together(rows: list[Row]) -> list[str]:
    """Many rows of one quantity as one: how many, and the one with the largest error."""
    worst = max(rows, key=lambda row: abs(row.error or 0) / (row.tolerance or 1))
    where = f"{len(rows)}, worst {worst.link} {ARROWS.get(worst.direction, worst.direction)}"
    return [where, *cells(worst)[2:-1], ""]


def cells(row: Row) -> tuple[str, ...]:
    """A row as text; each column of `COLUMNS`, and the note."""
    return (
        row.link,
        row.direction,
        row.quantity,
        written(row.configured, row.unit, DIGITS),
        written(row.measured, row.unit, DIGITS),
        _error(row),
        _uncertainty(row),
        "" if row.tolerance is None else "±" + written(row.tolerance, row.unit, 2),
        row.verdict,
        row.note,
    )


def _error(row: Row) -> str:
    """As a share of what is configured for a rate, in the row's own unit for the rest."""
    if row.error is None:
        return NONE
    if row.unit == "bit/s" and row.configured:
        return f"{row.error / row.configured:+.4%}"
    return ("+" if row.error >= 0 else "") + written(row.error, row.unit, 3)


def _uncertainty(row: Row) -> str:
    """Expanded, k = 2; in the unit of the error."""
    if row.uncertainty is None or row.measured is None:
        return NONE
    mark = ALLOWED if _is_allowed(row) else ""
    if row.unit == "bit/s" and row.configured:
        return f"{row.uncertainty.expanded / row.configured:.4%}{mark}"
    return written(row.uncertainty.expanded, row.unit, 2) + mark


def _is_allowed(row: Row) -> bool:
    """Return whether a row is ok although the whole interval value ± U is not inside its tolerance."""
    if row.verdict != "ok" or row.error is None or row.tolerance is None or row.uncertainty is None:
        return False
    return abs(row.error) + row.uncertainty.expanded > row.tolerance


def reasons(certificate: Certificate, most: int = 4) -> list[str]:
    """Return why measurements are not within tolerance, a line for each reason: verdict, quantities, note."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in certificate.rows:
        if row.verdict not in ("ok", "shown") and row.note:
            found.setdefault((row.verdict, row.note), {})[row.quantity] = None
    lines = [f"{verdict}: {', '.join(quantities)}: {note}" for (verdict, note), quantities in found.items()]
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more reasons"]


def summary(certificate: Certificate) -> str:
    """One line: passed or not, how many measurements are within tolerance, how long it took."""
    kinds: tuple[Verdict, ...] = ("outside", "not decidable", "not measured")
    total = certificate.count("ok") + sum(map(certificate.count, kinds))
    counts = f"{certificate.count('ok')} of {total} measurements within tolerance" if total else ""
    counts = ", ".join([counts, *(f"{certificate.count(kind)} {kind}" for kind in kinds if certificate.count(kind))])
    verdict = "verified" if certificate.passed else "NOT verified"
    if certificate.passed and certificate.count("not measured"):
        verdict = "partly verified"
    verdict += "" if certificate.policy == "default" else f" ({certificate.policy} policy)"
    seconds = certificate.elapsed_ns / NS_PER_SECOND
    unit = "s of virtual time" if certificate.clock == "virtual" else "s"
    return f"{certificate.lab} {verdict}: {counts or 'nothing to measure'} ({seconds:.1f} {unit})"


def circumstances(certificate: Certificate) -> list[str]:
    """The time, host and plan of a certificate, a line each; a certificate of the virtual clock has no time."""
    host = certificate.host
    lines = [
        f"lab {certificate.lab}, {certificate.clock} clock" + (f", {certificate.time}" if certificate.time else "")
    ]
    if certificate.machines:
        lines += [_of_machine(f" {name}", each.facts, each) for name, each in certificate.machines.items()]
        lines.append(f"asked from a machine on which nothing is emulated: kernel {host.kernel}, {host.cpu_model}")
    elif certificate.clock == "live":
        lines.append(_of_machine("", host))
    else:
        lines.append(f"virtual kernel {host.kernel}")
    lines.append(", ".join(f"{name} {version}" for name, version in sorted(host.versions.items())))
    lines.append(f"plan {certificate.plan_sha256}")
    lines += [f"meanwhile: {each}" for each in certificate.machine.disturbed or ()]
    return lines


def _of_machine(name: str, facts: MachineFacts, emulating: Emulating | None = None) -> str:
    what = "virtual machine" if facts.hypervisor else "machine"
    cpus = f"{facts.cpus} × {facts.cpu_model}, {about(facts.memory_bytes, 'size')}, clock {facts.clock_source}"
    line = f"{what}{name}: kernel {facts.kernel}, {cpus}"
    if emulating is None:
        return line
    links, nodes = (", ".join(map(str, each)) or "none" for each in (emulating.link_cpus, emulating.host_cpus))
    return f"{line}; links on CPU {links}, nodes on {nodes}"


def advice(certificate: Certificate) -> list[str]:
    """The disturbances of a live lab that did not pass, and the remedies, a line each; none for other labs."""
    if certificate.passed or certificate.clock == "virtual":
        return []
    again = f"measure again: ewan lab verify {certificate.lab}"
    seen = certificate.machine.disturbed
    changed = any(CHANGED in row.note for row in certificate.rows if row.verdict == "outside")
    faulty = any(named(row.note) for row in certificate.rows if row.verdict == "outside")
    lines = []
    if faulty:
        lines.append(
            "the notes name a fault of the lab: put it right, or bring the lab up anew, before it is measured again"
        )
    if changed:
        lines.append(
            "links were changed since the lab came up (ewan ps): set them back (ewan lab set), or bring it up anew"
        )
    if seen:
        lines.append(f"the machine was busy while the links were measured: {'; '.join(seen)}")
        virtual = "--runtime virtual (make: RUNTIME=virtual)"
        lines.append(f"close other programs and {again}; or take the virtual clock, which no load disturbs: {virtual}")
    elif not changed and not faulty:
        lines.append(
            f"nothing was seen to disturb the links: end other traffic in the lab (ewan lab watch) and {again}"
        )
    return lines


def write(certificate: Certificate, path: Path) -> None:
    """Writes a certificate as JSON."""
    writing.write(path, to_json(certificate))


def read(path: Path) -> Certificate:
    """ValueError, naming the file, when it is not a certificate of this version."""
    try:
        return from_json(read_bytes(path))
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise DocumentError(f"{path}: {error}") from None
