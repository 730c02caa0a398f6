"""The inside of the simulated box: its command line, its settings, its faults. Pure but for the datapath.

In: lines of a table (gtrcnet.toml), a datapath. Out: answers in the table's words. It accepts the commands of a box,
rounds to whole units, and knows nothing of the protocol of drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ewan.extras.devices import wire
from ewan.labs.hardware.abilities import Abilities

COARSE = 1000
"""Times its usual step, the one to which a box that rounds rounds its delays."""


class Datapath(Protocol):
    """The part of a box through which packets go."""

    def apply(self, heading: str, values: Mapping[str, int]) -> None:
        """Sets the rate, delay and loss of one direction."""

    def complete(self) -> int:
        """The number of the first millisecond that is not complete yet."""

    def sent(self, heading: str, since: int, rows: int) -> tuple[int, Sequence[int]]:
        """The number of the first complete millisecond from `since` on that is still known, and the bytes that left in
        it and in the ones behind it: `rows` numbers at most.
        """


@dataclass(slots=True)
class Faults:
    """Faults of a box: it does not answer; it rounds its delays to coarse steps."""

    silent: bool = False
    rounding: bool = False


@dataclass(slots=True)
class SimulatedBox:
    """`settings` by direction and key, in the table's units times their size."""

    table: wire.BoxVocabulary
    model: str
    abilities: Abilities
    datapath: Datapath
    faults: Faults = field(default_factory=Faults)
    settings: dict[str, dict[str, int]] = field(default_factory=dict)
    _began: int = 0
    """The datapath's number of the millisecond that the box numbers 0."""

    def defaults(self) -> None:
        """Resets the settings as after power-on; its milliseconds are counted anew."""
        self._began = self.datapath.complete()
        for heading in self.table.channels:
            self.settings[heading] = {"rate_bps": self.abilities.rate_bps.most, "delay_ns": 0, "loss_ppb": 0}
            self.datapath.apply(heading, self.settings[heading])

    def answer(self, line: str) -> str | None:
        """The answer to a command; None: the box is silent."""
        if self.faults.silent:
            return None
        table = self.table
        headings = {word: heading for heading, word in table.channels.items()}
        if table.identify.command.read(line) is not None:
            return table.identify.answer.filled(model=table.models[self.model], any="simulated")
        if table.reset.command.read(line) is not None:
            self.defaults()
            return table.reset.answer.filled()
        if found := table.monitor.command.read(line):
            if (heading := headings.get(found["channel"])) is None:
                return self._refused("channel")
            first, sent = self.datapath.sent(heading, self._began + int(found["since"]), int(found["rows"]))
            values = "".join(f" {each}" for each in sent)
            return table.monitor.answer.filled(channel=found["channel"], first=first - self._began, values=values)
        for key in wire.KEYS:
            if found := table.set[key].command.read(line):
                heading = headings.get(found["channel"])
                return self._refused("channel") if heading is None else self._set(heading, key, int(found["value"]))
            if found := table.get[key].command.read(line):
                if (heading := headings.get(found["channel"])) is None:
                    return self._refused("channel")
                value = self.settings[heading][key] // table.units[key]
                return table.get[key].answer.filled(channel=found["channel"], value=value)
        return self._refused("command")

    def _set(self, heading: str, key: str, units: int) -> str:
        value = units * self.table.units[key]
        known = {"rate_bps": self.abilities.rate_bps, "delay_ns": self.abilities.delay.delay_ns}.get(key)
        known = known or self.abilities.loss.ppb
        assert known is not None
        if not known.holds(value) and (key, value) != ("loss_ppb", 0):
            return self._refused("range")
        if self.faults.rounding and key == "delay_ns":
            step = COARSE * known.step
            value = (value + step // 2) // step * step
        self.settings[heading][key] = value
        self.datapath.apply(heading, self.settings[heading])
        return self.table.set[key].answer.filled()

    def _refused(self, what: str) -> str:
        return self.table.refusal.filled(any=what)
