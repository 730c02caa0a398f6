"""The driver of a dedicated Linux box: two cards in a bridge, netem and a token bucket on each, set by tc over SSH.

In: the protocol of docs/how-to/labs/hardware.md; options `first` and `second` name the box's cards, `config` another
file for ssh, `sudo: yes` asks for root there. What leaves the second card goes forward. A card has three disciplines:
netem (loss, corruption, duplication, delay), tbf with handle 10: (rate), a FIFO with 20: (bytes) or 30: (packets). All
count packets with 24 bytes more than Linux does (FCS, preamble, gap). Nothing is kept here: `read` parses `tc -j`.

tc does not tell which table of delays netem has, and netem keeps its table when it is changed. So netem's handle is
another one for each table (`TABLES`): with another handle the kernel makes a new netem, without a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ewan.extras.devices.remote import CommandError, ConnectedBox, opened, two_cards
from ewan.extras.devices.serve import DeviceRefusedError, serve
from ewan.labs.base.codec import replace
from ewan.labs.base.units import BITS_PER_BYTE, MEGA, NS_PER_SECOND, PPB
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.driver import HEADINGS, Counters, DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import (
    BernoulliLoss,
    ConstantDelay,
    Delay,
    DropTail,
    GilbertElliottLoss,
    Loss,
    Markov4Loss,
    NoLoss,
    NormalDelay,
    Queue,
    UniformDelay,
)
from ewan.labs.link.delay import nominal_ns

NAME = "ssh-netem"
MODEL = "linux"
IN_ORDER = "1tbit"
"""A rate of netem's own: packets with jitter then keep their order, and each takes 12 ns of 1500 bytes."""
DELAY_LINE = MEGA
"""Packets of netem's limit: the delay line has no limit of its own."""
LATE_NS = 50_000
"""The lateness of a timer of the box without loss of rate: the bucket holds so much, and a packet at least."""
FRAMED = 38
TABLES: dict[type[Delay], tuple[str, str]] = {
    ConstantDelay: ("1:", ""),
    UniformDelay: ("1:", ""),
    NormalDelay: ("2:", "normal"),
}
"""Kinds of delay: the handle of netem, and its table, which iproute2 installs beside tc.

netem's pareto is another one than a description's: its mean is the delay, and it begins 2/3 of jitter below that.
"""
SPREAD = {"2:": NormalDelay}
NO_CARD = "ewan-no-card"
"""No card has this name."""
_UNSET = Queue(limit_packets=1000, limit_bytes=None, discipline=DropTail())


def commands(card: str, settings: DeviceSettings, mtu: int) -> list[list[str]]:
    """The commands of tc, in this order. Pure."""
    delay = settings.delay
    handle, table = TABLES[type(delay)]
    netem = [*("tc", "qdisc", "replace", "dev", card, "root", "handle", handle, "stab", "overhead", "24")]
    netem += ["netem", "limit", str(DELAY_LINE), "delay", f"{nominal_ns(delay) // 1000}us"]
    if not isinstance(delay, ConstantDelay):
        assert isinstance(delay, UniformDelay | NormalDelay)
        netem.append(f"{delay.jitter_ns // 1000}us")
    netem += ["distribution", table] if table else []
    netem += _loss(settings.loss)
    netem += ["corrupt", _percent(settings.corrupt_ppb), "duplicate", _percent(settings.duplicate_ppb)]
    netem += ["rate", "0bit" if settings.reorder else IN_ORDER]
    assert settings.queue is not None
    burst = max(mtu + FRAMED, settings.rate_bps * LATE_NS // (BITS_PER_BYTE * NS_PER_SECOND))
    queue = settings.queue
    kind, limit = ("bfifo", queue.limit_bytes) if queue.limit_bytes is not None else ("pfifo", queue.limit_packets)
    tbf = ["tc", "qdisc", "replace", "dev", card, "parent", f"{handle}1", "handle", "10:", "tbf"]
    tbf += ["rate", f"{settings.rate_bps}bit", "burst", str(burst), "limit", str(limit)]
    own = {"bfifo": "20:", "pfifo": "30:"}[kind]
    fifo = ["tc", "qdisc", "replace", "dev", card, "parent", "10:1", "handle", own, kind, "limit", str(limit)]
    return [netem, tbf, fifo]


def _percent(ppb: int) -> str:
    whole, rest = divmod(ppb, PPB // 100)
    return f"{whole}.{rest:07d}%"


def _loss(loss: Loss) -> list[str]:
    match loss:
        case NoLoss():
            return ["loss", "random", "0%"]
        case BernoulliLoss():
            return ["loss", "random", _percent(loss.loss_ppb)]
        case GilbertElliottLoss():
            values = (loss.to_bad_ppb, loss.to_good_ppb, loss.loss_bad_ppb, loss.loss_good_ppb)
            return ["loss", "gemodel", *map(_percent, values)]
        case Markov4Loss():
            values4 = (loss.p13_ppb, loss.p31_ppb, loss.p32_ppb, loss.p23_ppb, loss.p14_ppb)
            return ["loss", "state", *map(_percent, values4)]
        case _:
            raise DeviceRefusedError(f"netem has no loss of the kind {loss.kind}")


def parsed(printed: str) -> tuple[DeviceSettings, Counters]:
    """Settings and counters of a card, from the output of `tc -j -s qdisc show dev CARD`. Pure; RefusedError for
    others'."""
    try:
        found = {each["handle"]: each for each in json.loads(printed) if "handle" in each}
        handle = next(each for each, _ in TABLES.values() if each in found)
        netem, tbf = found[handle], found["10:"]
        fifo = next(found[handle] for handle in ("20:", "30:") if handle in found)
        options = netem["options"]
        if (netem["kind"], tbf["kind"], fifo["kind"]) not in (("netem", "tbf", "bfifo"), ("netem", "tbf", "pfifo")):
            raise KeyError("kinds")
        limit = int(fifo["options"]["limit"])
        in_bytes = fifo["kind"] == "bfifo"
        queue = Queue(None if in_bytes else limit, limit if in_bytes else None, DropTail())
        settings = DeviceSettings(
            rate_bps=int(tbf["options"]["rate"]) * BITS_PER_BYTE,
            delay=_read_delay(options.get("delay", {}), handle),
            reorder="rate" not in options,
            loss=_read_loss(options),
            corrupt_ppb=_ppb(options.get("corrupt", {}).get("corrupt", 0)),
            duplicate_ppb=_ppb(options.get("duplicate", {}).get("duplicate", 0)),
            queue=queue,
        )
        return settings, Counters(int(netem["packets"]), int(netem["bytes"]), int(netem["drops"]))
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
        raise DeviceRefusedError("the card has no netem, tbf and FIFO of this driver: reset it first") from None


def _ppb(share: float) -> int:
    """tc prints six digits of a share."""
    return round(share * (PPB // 1000)) * 1000


def _ns(seconds: float) -> int:
    return round(seconds * (NS_PER_SECOND // 1000)) * 1000


def _read_delay(options: Mapping[str, float], handle: str) -> Delay:
    delay, jitter = _ns(options.get("delay", 0)), _ns(options.get("jitter", 0))
    return SPREAD.get(handle, UniformDelay)(delay, jitter) if jitter else ConstantDelay(delay)


def _read_loss(options: Mapping[str, Mapping[str, float]]) -> Loss:
    if "loss-gemodel" in options:
        of = options["loss-gemodel"]
        p, r, bad, good = (_ppb(of[key]) for key in ("p", "r", "1-h", "1-k"))
        return GilbertElliottLoss(to_bad_ppb=p, to_good_ppb=r, loss_bad_ppb=bad, loss_good_ppb=good)
    if "loss-state" in options:
        states = {f"{key}_ppb": _ppb(value) for key, value in options["loss-state"].items()}
        return Markov4Loss(**states)
    share = _ppb(options.get("loss-random", {}).get("loss", 0))
    return BernoulliLoss(share) if share else NoLoss()


class SshNetem:
    """A box. See `ewan.extras.devices.serve.Device`."""

    def __init__(self) -> None:
        self._remote: ConnectedBox | None = None
        self._cards: dict[str, str] = {}
        self._mtu = 1500
        self._known = catalogue.models(NAME)[MODEL].abilities

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> DeviceDescription:
        """Connects; the cards must be there and in one bridge."""
        if model not in (None, MODEL):
            raise DeviceRefusedError(f"there is the model {MODEL} alone")
        cards = two_cards(options, "eth1 and eth2")
        if self._remote is not None:
            self._remote.close()
        self._remote = opened(address, options)
        links = [
            json.loads(self._remote.run(["ip", "-j", "link", "show", "dev", card], plain=True))[0] for card in cards
        ]
        if links[0].get("master") is None or links[0].get("master") != links[1].get("master"):
            one, two = cards
            raise DeviceRefusedError(
                f"{one} and {two} are not in one bridge: on the box write ip link add br0 type bridge, "
                f"ip link set {one} master br0 up, ip link set {two} master br0 up, ip link set br0 up"
            )
        self._mtu = max(int(link["mtu"]) for link in links)
        self._cards = {"forward": cards[1], "backward": cards[0]}
        kernel, tool = (self._remote.run(words, plain=True).strip() for words in (["uname", "-sr"], ["tc", "-V"]))
        device = f"{kernel}, {tool}"
        delay = self._known.delay
        delay = replace(delay, kinds=tuple(each for each in delay.kinds if self._has(each)))
        return DeviceDescription(MODEL, device, replace(self._known, delay=delay))

    def _has(self, kind: str) -> bool:
        """Return whether the box has the table of a kind of delay: tc reads it before it looks for the card."""
        if kind not in {table for _, table in TABLES.values() if table}:
            return True
        words = ["tc", "qdisc", "add", "dev", NO_CARD, "root", "netem", "delay", "1ms", "1ms", "distribution", kind]
        try:
            self._box.run(words, plain=True)
        except CommandError as error:
            return "distribution" not in str(error).replace(" ".join(words), "")
        return True

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """Set one direction by three commands of tc; the former settings are restored where one of them fails."""
        box, card = self._box, self._cards[heading]
        try:
            before: DeviceSettings | None = parsed(self._show(card))[0]
        except DeviceRefusedError:
            before = None
        try:
            for words in commands(card, settings, self._mtu):
                box.run(words)
        except DeviceRefusedError:
            for words in commands(card, before, self._mtu) if before is not None else ():
                box.run(words)
            raise

    def read(self) -> DeviceReading:
        """Read the settings and counters that tc shows."""
        found = {heading: parsed(self._show(self._cards[heading])) for heading in HEADINGS}
        forward, backward = (found[heading][0] for heading in HEADINGS)
        return DeviceReading(forward, backward, {heading: counters for heading, (_, counters) in found.items()})

    def series(self, since: int) -> SeriesRows:
        """Refuses: tc's counters are read one by one."""
        raise DeviceRefusedError("the box keeps no series")

    def reset(self) -> None:
        """Disciplines made anew, which also counts anew: the highest rate, no delay, no loss, 1000 packets."""
        neutral = DeviceSettings(self._known.rate_bps.most, ConstantDelay(0), False, NoLoss(), 0, 0, _UNSET)
        for card in self._cards.values():
            ours = {handle for handle, _ in TABLES.values()}
            if any(each.get("handle") in ours for each in json.loads(self._show(card))):
                self._box.run(["tc", "qdisc", "del", "dev", card, "root"])
            for words in commands(card, neutral, self._mtu):
                self._box.run(words)

    @property
    def _box(self) -> ConnectedBox:
        if self._remote is None:
            raise DeviceRefusedError("the first request is describe")
        return self._remote

    def _show(self, card: str) -> str:
        return self._box.run(["tc", "-j", "-s", "qdisc", "show", "dev", card], plain=True)


if __name__ == "__main__":
    serve(SshNetem())
