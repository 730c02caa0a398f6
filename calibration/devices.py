"""Compares what the devices of a lab report with what was measured of them. Pure.

In: the answers of the devices' keepers to `device` after the probes. Out: rows of a certificate: of each setting what
was requested and what the device says; whether the device answered all the time. A row outside is the device's own
fault: it is dead, it rounds, it was reset. The rows of the measurements beside them tell what the lab does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ewan.calibration.reference import InstrumentReading, Readings
from ewan.labs.base.units import NS_PER_MS, mean_rate_bps
from ewan.labs.hardware.abilities import Abilities, ranges
from ewan.labs.hardware.account import Fault
from ewan.labs.hardware.counts import DeviceCount
from ewan.labs.hardware.device_answers import DeviceSeries, DeviceStatus, SilentDevice
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link.delay import nominal_ns
from ewan.labs.record import COVERAGE_FACTOR, Certificate, Row, Verdict

HEADINGS = ("forward", "backward")
QUANTITIES = {"delay": ("ns", "delay.delay_ns"), "rate": ("bit/s", "rate_bps"), "loss": ("ppb", "loss.ppb")}
"""For each quantity of a device: the unit of its row, and the range that has its step."""
Counts = Mapping[str, Mapping[str, DeviceCount]]
"""By link and direction."""
WINDOW_MS = 100
MEASURED = {"delay": "delay p50", "rate": "rate", "loss": "loss"}
"""The row of the measurement beside it."""


def rows(told: Sequence[DeviceStatus | SilentDevice]) -> tuple[Row, ...]:
    """The counters of all devices."""
    return tuple(row for each in told for row in _of_device(each))


def _of_device(told: DeviceStatus | SilentDevice) -> Iterator[Row]:
    link = told.link
    if isinstance(told, SilentDevice):
        yield _answers(link, False, told.error)
        return
    dead = [each for each in told.faults if each.kind == "dead"]
    yield _answers(link, not dead, dead[-1].said if dead else f"{told.device}, driver {told.driver}")
    for heading in HEADINGS:
        faults = [each for each in told.faults if each.said.startswith(heading) and each.kind != "dead"]
        asked, says = told.requested.get(heading), told.says.get(heading)
        if asked is not None and says is not None:
            yield from _of_direction(link, heading, asked, says, told.abilities, faults)


def _answers(link: str, holds: bool, note: str) -> Row:
    said = note if holds else f"the device's fault, dead: {note}"
    measured = 1.0 if holds else 0.0
    return Row(
        link, "", "device answers", "count", 1.0, measured, measured - 1.0, 0.0, "ok" if holds else "outside", said
    )


def _of_direction(
    link: str,
    heading: str,
    asked: DeviceSettings,
    says: DeviceSettings,
    abilities: Abilities,
    faults: Sequence[Fault],
) -> Iterator[Row]:
    steps = ranges(abilities)
    for quantity, (unit, name) in QUANTITIES.items():
        wanted, found = _value(asked, quantity), _value(says, quantity)
        step = steps[name].step if name in steps else 1
        error = found - wanted
        within = abs(error) <= step / 2
        known = [each for each in faults if f" {quantity} " in f"{each.said} "]
        note = ""
        if known:
            note = f"the device's fault, {known[-1].kind}: {known[-1].said}"
            note += " (over)" if known[-1].ended_s is not None else ""
        elif error:
            note = f"the device has steps of {step} {unit}"
        verdict: Verdict = "ok" if within and not known else "outside"
        yield Row(
            link,
            heading,
            f"device says {quantity}",
            unit,
            wanted,
            found,
            error,
            step / 2,
            verdict,
            note,
        )


def _value(settings: DeviceSettings, quantity: str) -> float:
    match quantity:
        case "delay":
            return float(nominal_ns(settings.delay))
        case "rate":
            return float(settings.rate_bps)
        case _:
            return float(getattr(settings.loss, "loss_ppb", 0))


def read_rates(found: Sequence[Row], series: Mapping[str, DeviceSeries]) -> tuple[Row, ...]:
    """The highest rate over `WINDOW_MS` that each device read while the probes ran, beside what was measured; shown.

    `series`: by link what its keeper answered, of the time of the probes only.
    """
    measured = {(row.link, row.direction): row for row in found if row.quantity == "rate"}
    shown = []
    for link, answer in series.items():
        for heading, columns in zip(HEADINGS, (answer.forward, answer.backward), strict=True):
            sent = columns.out_bytes
            if len(sent) < WINDOW_MS:
                continue
            total = most = sum(sent[:WINDOW_MS])
            for place in range(WINDOW_MS, len(sent)):
                total += sent[place] - sent[place - WINDOW_MS]
                most = max(most, total)
            rate = float(mean_rate_bps(most, WINDOW_MS * NS_PER_MS))
            ours = measured.get((link, heading))
            beside = ours.measured if ours is not None else None
            note = f"in its busiest {WINDOW_MS} ms of {len(sent)}"
            error = None if beside is None else rate - beside
            note += "" if beside is None else "; beside what was measured here"
            shown.append(Row(link, heading, "device reads rate", "bit/s", beside, rate, error, None, "shown", note))
    return tuple(shown)


def counted(before: Counts, after: Counts) -> tuple[Row, ...]:
    """Rows, for information only, that compare what each device counted while the probes ran with what our cards behind
    it counted. `before` and `after` hold, by link, the keeper's answers to `counters`.
    """
    shown = []
    for link in before.keys() & after.keys():
        for heading in HEADINGS:
            then, now = before[link].get(heading), after[link].get(heading)
            if then is None or now is None:
                continue
            device, ours = now.out_packets - then.out_packets, now.came_packets - then.came_packets
            dropped = now.dropped_packets - then.dropped_packets
            note = f"beside what our card behind it counted; it dropped {dropped}"
            if device < 0 or dropped < 0:
                device, note = now.out_packets, "it was reset meanwhile; beside what our card behind it counted"
            row = ("device counts packets", "count", float(ours), float(device), float(device - ours), None, "shown")
            shown.append(Row(link, heading, *row, note))  # type: ignore[arg-type]
    return tuple(sorted(shown, key=lambda row: (row.link, row.direction == "backward")))


def readings(certificate: Certificate) -> Readings | None:
    """The values that the devices report, as readings of another instrument, for the rows of measurements; None without
    devices.

    Their uncertainty is that of a value that was rounded to a step (GUM, 4.3.7), expanded.
    """
    by = {(row.link, row.direction, row.quantity): row for row in certificate.rows}
    listed = []
    for (link, heading, quantity), row in by.items():
        ours = by.get((link, heading, MEASURED.get(quantity.removeprefix("device says "), "")))
        if quantity.startswith("device says ") and ours is not None:
            assert row.measured is not None and row.tolerance is not None
            value, own = row.measured, (ours.configured or 0.0) - (row.configured or 0.0)
            # A packet's delay has its serialisation too, which the setting has not.
            value += own if ours.unit == "ns" else 0.0
            spread = COVERAGE_FACTOR * row.tolerance / 3**0.5
            listed.append(InstrumentReading(link, heading, ours.quantity, ours.unit, value, spread))  # type: ignore[arg-type]
    if not listed:
        return None
    told = certificate.machine.devices or ()
    instrument = ", ".join(dict.fromkeys(str(each.get("device", each["link"])) for each in told))
    return Readings(instrument, tuple(listed))
