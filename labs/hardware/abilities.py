"""The abilities of an external emulator, from its driver's `describe` or from the files of shipped drivers. Pure.

In: the JSON of a driver, and one direction of a link. Out: `Abilities`; the first setting of the direction that the
device cannot have, with what it can; what the device makes of a value between two of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct, replace, tags
from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.hardware.settings import DeviceSettings, settings_of
from ewan.labs.link import Delay, Direction, Framing, Loss, Queue
from ewan.labs.link.delay import nominal_ns
from ewan.labs.link.direction import TABLE, is_plain
from ewan.labs.link.framing import framing_words
from ewan.labs.link.queue import AnyDiscipline

ENDING = ".driver.json"

if TYPE_CHECKING:
    DelayKind = str
    LossKind = str
    DisciplineKind = str
else:
    DelayKind, LossKind, DisciplineKind = (Literal[tags(each)] for each in (Delay, Loss, AnyDiscipline))


class Range(Struct):
    """Values from `least` to `most`; the device has those that are whole steps above `least`, and rounds others."""

    least: int
    most: int
    step: int

    def holds(self, value: int) -> bool:
        """Return whether the device accepts this value."""
        return self.least <= value <= self.most

    def nearest(self, value: int) -> int:
        """The value that the device has nearest to one within the range."""
        steps = (2 * (value - self.least) + self.step) // (2 * self.step)
        return self.least + min(steps, (self.most - self.least) // self.step) * self.step

    @property
    def middle(self) -> int:
        """A value of the device in the middle of the range."""
        return self.nearest((self.least + self.most) // 2)


class Delays(Struct):
    """Kinds of `ewan.labs.link.delay`; `jitter_ns` is None where all kinds are constant."""

    kinds: tuple[DelayKind, ...]
    delay_ns: Range
    jitter_ns: Range | None


class Losses(Struct):
    """Kinds of `ewan.labs.link.loss`; `ppb` holds for every probability of theirs, None where there are none."""

    kinds: tuple[LossKind, ...]
    ppb: Range | None


class Queues(Struct):
    """`KINDS` of `ewan.labs.link.disciplines`, and how the limit is counted; the device needs one of the two ranges."""

    disciplines: tuple[DisciplineKind, ...]
    limit_bytes: Range | None
    limit_packets: Range | None


class SeriesAbility(Struct):
    """The ability to count the bytes of each period, and the number of periods that the device keeps."""

    period_ns: int
    rows: int


class Abilities(Struct):
    """All that a device can; None: it has no such setting.

    `framing`: what its rate counts. `apart`: its two directions may differ. `queue` None: it has a queue of its own,
    without settings. `counters`: `read` counts packets too.
    """

    framing: Framing
    rate_bps: Range
    delay: Delays
    loss: Losses
    corrupt_ppb: Range | None
    duplicate_ppb: Range | None
    reorder: bool
    queue: Queues | None
    apart: bool
    series: SeriesAbility | None
    counters: bool


class ModelEntry(Struct):
    """A model in a driver's file; `sources` say where its figures are from."""

    abilities: Abilities
    sources: tuple[str, ...] = ()


class DriverFile(Document, tag="ewan-driver/1"):
    """The file beside a driver that says what its models can."""

    models: dict[str, ModelEntry]


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """One model of device that a driver knows."""

    name: str
    abilities: Abilities
    sources: tuple[str, ...]


Stage = TypeVar("Stage", bound=Struct)
LIMITS = ("limit_bytes", "limit_packets")
Refusal = tuple[str, str]
"""A key of the description, and what the device has in place of what it says."""


def read_abilities(data: Any, where: str) -> Abilities:
    """ValueError, one line, for any other value: `WHERE.delay has no key 'kinds'`, an empty range."""
    found = codec.from_data(Abilities, data, where)
    _check(found, where)
    return found


def _check(found: Abilities, where: str) -> None:
    for name, each in ranges(found).items():
        if each.least < 0 or each.most < each.least or each.step < 1:
            raise ValueError(f"{where}.{name} goes from {each.least} to {each.most} by {each.step}")
    if found.rate_bps.least < 1:
        raise ValueError(f"{where}.rate_bps begins at {found.rate_bps.least}: write at least 1")
    if not found.delay.kinds or not found.loss.kinds or (found.queue is not None and not found.queue.disciplines):
        raise ValueError(f"{where} has an empty list of kinds: write at least constant, none and drop_tail")
    if found.delay.jitter_ns is None and set(found.delay.kinds) - {"constant", "table"}:
        raise ValueError(f"{where}.delay has no jitter_ns, which its kinds need")
    if found.loss.ppb is None and set(found.loss.kinds) - {"none", "every_nth", "pattern"}:
        raise ValueError(f"{where}.loss has no ppb, which its kinds need")
    if found.queue is not None and found.queue.limit_bytes is None and found.queue.limit_packets is None:
        raise ValueError(f"{where}.queue has neither limit_bytes nor limit_packets: write null where it has no limit")
    if found.series is not None and (found.series.period_ns < 1 or found.series.rows < 1):
        raise ValueError(f"{where}.series has no rows")


def read_models(text: bytes, where: str) -> dict[str, DeviceModel]:
    """The models of a driver's file by name, the default one first; ValueError, one line, for what is no such file."""
    models = codec.decode(DriverFile, text, f"{where}:").models
    if not models:
        raise ValueError(f"{where}: has no model")
    for name, model in models.items():
        _check(model.abilities, f"{where}: models.{name}.abilities")
    return {name: DeviceModel(name, model.abilities, model.sources) for name, model in models.items()}


def ranges(abilities: Abilities) -> dict[str, Range]:
    """All ranges of values by name, as `delay.delay_ns`."""
    queue = abilities.queue
    found = {
        "rate_bps": abilities.rate_bps,
        "delay.delay_ns": abilities.delay.delay_ns,
        "delay.jitter_ns": abilities.delay.jitter_ns,
        "loss.ppb": abilities.loss.ppb,
        "corrupt_ppb": abilities.corrupt_ppb,
        "duplicate_ppb": abilities.duplicate_ppb,
        "queue.limit_bytes": None if queue is None else queue.limit_bytes,
        "queue.limit_packets": None if queue is None else queue.limit_packets,
    }
    return {name: each for name, each in found.items() if each is not None}


def refusal(direction: Direction, abilities: Abilities, own_buffer: bool = False) -> Refusal | None:
    """The first setting that the device cannot have; None if it has them all.

    `own_buffer`: no buffer is written, so that it is the device's own where the device has no such setting.
    """
    if found := _of_model_alone(direction):
        return found
    if direction.framing != abilities.framing:
        return "framing", f"its rate counts {framing_words(abilities.framing)}"
    return beyond(settings_of(direction, queue=True), abilities, own_buffer)


def _of_model_alone(direction: Direction) -> Refusal | None:
    """The first setting that drivers know no word for and that a plain link does not have."""
    asked = (key for key, row in TABLE.items() if not row.device and not is_plain(row, direction))
    return next(((key, "no external emulator is asked for it") for key in asked), None)


def beyond(settings: DeviceSettings, abilities: Abilities, own_buffer: bool = False) -> Refusal | None:
    """The first of the settings of one direction that the device cannot have."""
    if not abilities.rate_bps.holds(settings.rate_bps):
        return "rate", f"it has rates {_between(abilities.rate_bps, Rate)}"
    if why := _of_delay(settings.delay, abilities.delay):
        return "delay", why
    if settings.reorder and not abilities.reorder:
        return "reorder", "it keeps packets in order"
    if why := _of_loss(settings.loss, abilities.loss):
        return "loss", why
    for key, value, known in (
        ("corrupt", settings.corrupt_ppb, abilities.corrupt_ppb),
        ("duplicate", settings.duplicate_ppb, abilities.duplicate_ppb),
    ):
        if value and (known is None or not known.holds(value)):
            return key, "it has no such setting" if known is None else f"it has {_between(known, Fraction)}"
    return _of_queue(settings.queue, abilities.queue, own_buffer)


def _of_delay(delay: Delay, known: Delays) -> str:
    if delay.kind not in known.kinds:
        return f"its delays are {' or '.join(known.kinds)}"
    if not known.delay_ns.holds(nominal_ns(delay)):
        return f"it delays {_between(known.delay_ns, Duration)}"
    jitter = getattr(delay, "jitter_ns", None)
    if jitter is not None and known.jitter_ns is not None and not known.jitter_ns.holds(jitter):
        return f"its jitter is {_between(known.jitter_ns, Duration)}"
    return ""


def _of_loss(loss: Loss, known: Losses) -> str:
    if loss.kind not in known.kinds:
        return f"its losses are {' or '.join(known.kinds)}"
    if known.ppb is not None and any(not known.ppb.holds(share) for share in probabilities(loss).values()):
        return f"it loses {_between(known.ppb, Fraction)}"
    return ""


def _of_queue(queue: Queue | None, known: Queues | None, own_buffer: bool) -> Refusal | None:
    if known is None or queue is None:
        if known is not None:
            return "buffer", "its queue is set: say how much it holds"
        if queue is None or (own_buffer and queue.discipline.kind == "drop_tail"):
            return None
        key = "buffer" if queue.discipline.kind == "drop_tail" else "queue"
        return key, f"it reports nothing about its own queue: leave {key} out"
    if queue.discipline.kind not in known.disciplines:
        return "queue", f"its queues are {' or '.join(known.disciplines)}"
    if queue.limit_packets is not None and queue.limit_bytes is not None:
        return "buffer", "its queue has one limit, in bytes or in packets"
    limit, unit, kind = (
        (queue.limit_packets, known.limit_packets, _packets)
        if queue.limit_packets is not None
        else (queue.limit_bytes, known.limit_bytes, Size)
    )
    if unit is None:
        return "buffer", f"it counts its queue in {'bytes' if queue.limit_packets is not None else 'packets'}"
    if limit is None or not unit.holds(limit):
        return "buffer", f"its queue holds {_between(unit, kind)}"
    return None


def probabilities(loss: Loss) -> Mapping[str, int]:
    """The probabilities (ppb) of a loss model by name."""
    names = (name for name in loss.__struct_fields__ if name.endswith("_ppb"))
    return {name: getattr(loss, name) for name in names}


def _packets(count: int) -> str:
    return f"{count}pkt"


def _between(known: Range, quantity: Callable[[int], object]) -> str:
    if known.least == known.most:
        return f"{quantity(known.least)} alone"
    return f"from {quantity(known.least)} to {quantity(known.most)} by {quantity(known.step)}"


def rounded(wanted: DeviceSettings, abilities: Abilities) -> DeviceSettings:
    """The settings that a device should report after it was set: each value rounded to its nearest step."""
    delays = {"delay_ns": abilities.delay.delay_ns, "jitter_ns": abilities.delay.jitter_ns}
    limits = {} if abilities.queue is None else {name: getattr(abilities.queue, name) for name in LIMITS}
    shares = {"corrupt_ppb": abilities.corrupt_ppb, "duplicate_ppb": abilities.duplicate_ppb}
    made = replace(
        wanted,
        rate_bps=abilities.rate_bps.nearest(wanted.rate_bps),
        delay=_nearest(wanted.delay, delays),
        loss=_nearest(wanted.loss, dict.fromkeys(probabilities(wanted.loss), abilities.loss.ppb)),
        queue=None if wanted.queue is None else _nearest(wanted.queue, limits),
    )
    return _nearest(made, {key: known for key, known in shares.items() if getattr(made, key)})


def _nearest(stage: Stage, known: Mapping[str, Range | None]) -> Stage:
    made = {
        key: each.nearest(value)
        for key, each in known.items()
        if each is not None and (value := getattr(stage, key, None)) is not None
    }
    return replace(stage, **made)
