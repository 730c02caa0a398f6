"""The driver of GtrcNET-1 and GtrcNET-10, AIST's network emulators in FPGAs (Kodama et al.; the eWAN and NXE papers).

In: the protocol of docs/how-to/labs/hardware.md. Out: the box's commands, by the table in gtrcnet.toml or in the file
that the option `wire` names. What the boxes' own words are is not known to us: see there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ewan.extras.devices import wire
from ewan.extras.devices.line import Line
from ewan.extras.devices.serve import DeviceRefusedError, serve
from ewan.labs.base.reading import read_text
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.driver import DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import BernoulliLoss, ConstantDelay, Loss, NoLoss

TABLE = Path(__file__).resolve().with_suffix(".toml")
NAME = "gtrcnet"


class Gtrcnet:
    """A box behind a line. See `ewan.extras.devices.serve.Device`."""

    def __init__(self) -> None:
        self._line: Line | None = None
        self._table = wire.read(TABLE.read_text(), TABLE.name)

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> DeviceDescription:
        """Asks the box which model it is."""
        if unknown := sorted(options.keys() - {"wire"}):
            raise DeviceRefusedError(f"option {unknown[0]}: there is only wire")
        if "wire" in options:
            self._table = wire.read(read_text(options["wire"]), options["wire"])
        if self._line is not None:
            self._line.close()
        self._line = Line(address, self._table.baud)
        found = self._ask(self._table.identify)
        names = {word: name for name, word in self._table.models.items()}
        own = names.get(found["model"])
        known = catalogue.models(NAME)
        if own is None or own not in known:
            raise DeviceRefusedError(f"the box is a {found['model']}: known are {', '.join(names)}")
        if model is not None and model != own:
            raise DeviceRefusedError(f"the box is a {own}, no {model}")
        device = f"{found['model']} {found.get('any', '')}".strip()
        return DeviceDescription(own, device, known[own].abilities)

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """Three commands."""
        loss = settings.loss.loss_ppb if isinstance(settings.loss, BernoulliLoss) else 0
        assert isinstance(settings.delay, ConstantDelay)
        values = {"rate_bps": settings.rate_bps, "delay_ns": settings.delay.delay_ns, "loss_ppb": loss}
        for key, value in values.items():
            units = value // self._table.units[key]
            self._ask(self._table.set[key], channel=self._table.channels[heading], value=units)

    def read(self) -> DeviceReading:
        """Three questions for each direction."""
        return DeviceReading(self._settings("forward"), self._settings("backward"), {})

    def _settings(self, heading: str) -> DeviceSettings:
        channel = self._table.channels[heading]
        found = {}
        for key, ask in self._table.get.items():
            found[key] = int(self._ask(ask, channel=channel)["value"]) * self._table.units[key]
        loss: Loss = BernoulliLoss(found["loss_ppb"]) if found["loss_ppb"] else NoLoss()
        return DeviceSettings(found["rate_bps"], ConstantDelay(found["delay_ns"]), False, loss, 0, 0, None)

    def series(self, since: int) -> SeriesRows:
        """The bytes of both directions, for the milliseconds that both answers have."""
        first, forward = self._rows("forward", since)
        begin, backward = self._rows("backward", first)
        forward = forward[begin - first :]  # the box may have forgotten some between the two answers
        length = min(len(forward), len(backward))
        return SeriesRows(NS_PER_MS, begin, tuple(forward[:length]), tuple(backward[:length]))

    def _rows(self, heading: str, since: int) -> tuple[int, list[int]]:
        channel = self._table.channels[heading]
        found = self._ask(self._table.monitor, channel=channel, since=since, rows=self._table.rows)
        return int(found["first"]), [int(each) for each in found["values"].split()]

    def reset(self) -> None:
        """One command."""
        self._ask(self._table.reset)

    def _ask(self, ask: wire.BoxExchange, **values: object) -> Mapping[str, str]:
        if self._line is None:
            raise DeviceRefusedError("the first request is describe")
        command = ask.command.filled(**values)
        answer = self._line.ask(command, self._table.ends_with, self._table.answers_within_s)
        found = ask.answer.read(answer)
        if found is None and self._table.refusal.read(answer) is not None:
            raise DeviceRefusedError(f"the box refuses {command}: {answer}")
        if found is None or ("channel" in found and found["channel"] != str(values["channel"])):
            raise DeviceRefusedError(f"the box answers {command} with {answer}")
        return found


if __name__ == "__main__":
    serve(Gtrcnet())
