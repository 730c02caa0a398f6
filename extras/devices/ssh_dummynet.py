"""The driver of a dedicated FreeBSD box: two cards in a bridge, a pipe of Dummynet for each, set by ipfw over SSH.

In: the protocol of docs/how-to/labs/hardware.md; options as of ssh-netem, and `number` for the first of two rules and
pipes. What leaves the second card goes forward, through rule and pipe `number`; backward is the next one. Commands are
those of ipfw(8), if_bridge(4) and dummynet(4); what `ipfw pipe show` prints is in sbin/ipfw/dummynet.c. Nothing is kept
here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ewan.extras.devices.remote import ConnectedBox, opened, two_cards
from ewan.extras.devices.serve import DeviceRefusedError, serve
from ewan.labs.base.codec import replace
from ewan.labs.base.units import GIGA, KILO, MEGA, NS_PER_MS, PPB
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import Abilities, Range
from ewan.labs.hardware.driver import HEADINGS, DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import BernoulliLoss, ConstantDelay, DropTail, Loss, NoLoss, Queue

NAME = "ssh-dummynet"
MODEL = "freebsd"
NUMBER = 100
LAST_NUMBER = 65533  # the last rule, 65535, is the kernel's own
KBYTE = 1024
"""Bytes in a queue's K. A bandwidth's K is 1000."""
FLOW_SET = 2 * 65536
"""Pipe N has its queue in flow set N + 2 * 65536, whose line begins with q."""
UNSET_SLOTS = 50  # what ipfw(8) gives a pipe without `queue`

_LINK = re.compile(r"^0*(\d+): +(?:(unlimited)|([\d.]+) ([KMG]?)bit/s) +(\d+) ms\b.*$")
_QUEUE = re.compile(r"^q0*(\d+) +(\d+) (sl\.|B|KB) ?(?:plr ([\d.]+))? *\d+ flows \(\d+ buckets\) .* droptail *$")
_THOUSANDS = {"": 1, "K": KILO, "M": MEGA, "G": GIGA}
_MEMBER = re.compile(r"^\s+member: (\S+) ", re.MULTILINE)


def configuration(number: int, settings: DeviceSettings) -> list[str]:
    """The command that sets a pipe, all of it. Pure."""
    assert isinstance(settings.delay, ConstantDelay) and settings.queue is not None
    queue = settings.queue
    size = str(queue.limit_packets) if queue.limit_bytes is None else f"{queue.limit_bytes // KBYTE}Kbytes"
    lost = settings.loss.loss_ppb if isinstance(settings.loss, BernoulliLoss) else 0
    whole, rest = divmod(lost, PPB)
    words = ["ipfw", "pipe", str(number), "config", "bw", f"{settings.rate_bps}bit/s"]
    words += ["delay", str(settings.delay.delay_ns // NS_PER_MS), "queue", size, "plr", f"{whole}.{rest:09d}"]
    return [*words, "droptail"]


def rule(number: int, card: str) -> list[str]:
    """The words of the rule that fills a pipe with the packets that the bridge sends out of a card. Pure."""
    return [*("pipe", str(number)), *("ip", "from", "any", "to", "any"), *("layer2", "out", "xmit", card)]


def has_rule(listed: str, number: int, card: str) -> bool:
    """Return whether `ipfw list` shows the rule, and no other of this number; RefusedError where there are others.
    Pure."""
    split = [line.split() for line in listed.splitlines()]
    found = [words[1:] for words in split if words and words[0].isdecimal() and int(words[0]) == number]
    other = next((words for words in found if sorted(words) != sorted(rule(number, card))), None)
    if other is not None or len(found) > 1:
        said = " ".join(other or found[1])
        raise DeviceRefusedError(f"rule {number} of the box is used by others, too ({said}): choose another number")
    return bool(found)


def parsed(printed: str, number: int) -> DeviceSettings:
    """The settings of a pipe of which `ipfw pipe show` printed; RefusedError for another's. Pure."""
    lines = printed.splitlines()
    link = next((m for line in lines if (m := _LINK.match(line)) and int(m[1]) == number), None)
    queue = next((m for line in lines if (m := _QUEUE.match(line)) and int(m[1]) == number + FLOW_SET), None)
    if link is None or link[2] or queue is None:
        raise DeviceRefusedError(f"pipe {number} is none of this driver: reset it first")
    lost = round(float(queue[4] or 0) * (PPB // 1000)) * 1000  # six digits
    loss: Loss = BernoulliLoss(lost) if lost else NoLoss()
    size = int(queue[2])
    in_bytes = {"sl.": None, "B": size, "KB": size * KBYTE}[queue[3]]
    return DeviceSettings(
        rate_bps=round(float(link[3]) * _THOUSANDS[link[4]]),
        delay=ConstantDelay(int(link[5]) * NS_PER_MS),
        reorder=False,
        loss=loss,
        corrupt_ppb=0,
        duplicate_ppb=0,
        queue=Queue(size if in_bytes is None else None, in_bytes, DropTail()),
    )


def _first_number(options: Mapping[str, str]) -> int:
    text = options.get("number", str(NUMBER))
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > LAST_NUMBER:
        raise DeviceRefusedError(f"option number is that of the first of two rules and pipes: write 1 to {LAST_NUMBER}")
    return int(text)


def _up_to(known: Range | None, most: int) -> Range | None:
    if known is None:
        return None
    if most < known.least:
        raise DeviceRefusedError(f"the box's queues hold {most} at most: raise net.inet.ip.dummynet.pipe_slot_limit")
    return replace(known, most=min(known.most, known.least + (most - known.least) // known.step * known.step))


class SshDummynet:
    """A box. See `ewan.extras.devices.serve.Device`."""

    def __init__(self) -> None:
        self._remote: ConnectedBox | None = None
        self._pipes: dict[str, tuple[int, str]] = {}
        self._known = catalogue.models(NAME)[MODEL].abilities

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> DeviceDescription:
        """Connects; the cards must be in one bridge, whose packets ipfw sees. The queue's limits are the box's."""
        if model not in (None, MODEL):
            raise DeviceRefusedError(f"there is the model {MODEL} alone")
        cards, number = two_cards(options, "em1 and em2", ("number",)), _first_number(options)
        if self._remote is not None:
            self._remote.close()
        self._remote = opened(address, options)
        device = self._said("uname", "-sr")
        if not device.startswith("FreeBSD"):
            raise DeviceRefusedError(f"the box is no FreeBSD: it says {device}")
        self._need_bridge(cards)
        self._need("net.link.bridge.ipfw", 1, "ipfw sees what the bridge passes on")
        ticks = self._number("kern.hz")
        if ticks % 1000:
            raise DeviceRefusedError(f"kern.hz is {ticks}: delays of whole ms need kern.hz=1000 in /boot/loader.conf")
        self._known = self._of_box(catalogue.models(NAME)[MODEL].abilities)
        self._pipes = {"forward": (number, cards[1]), "backward": (number + 1, cards[0])}
        return DeviceDescription(MODEL, device, self._known)

    def _need_bridge(self, cards: tuple[str, str]) -> None:
        for bridge in self._said("ifconfig", "-g", "bridge").split():
            if set(cards) <= set(_MEMBER.findall(self._box.run(["ifconfig", bridge], plain=True))):
                return
        one, two = cards
        raise DeviceRefusedError(
            f"{one} and {two} are not in one bridge: on the box write ifconfig bridge0 create, "
            f"ifconfig bridge0 addm {one} addm {two} up, ifconfig {one} up, ifconfig {two} up"
        )

    def _need(self, variable: str, value: int, why: str) -> None:
        if self._number(variable) != value:
            raise DeviceRefusedError(f"on the box write sysctl {variable}={value}, so that {why}")

    def _of_box(self, known: Abilities) -> Abilities:
        assert known.queue is not None
        slots, size = (self._number(f"net.inet.ip.dummynet.pipe_{each}_limit") for each in ("slot", "byte"))
        limits = {"limit_packets": _up_to(known.queue.limit_packets, slots)}
        limits["limit_bytes"] = _up_to(known.queue.limit_bytes, size)
        return replace(known, queue=replace(known.queue, **limits))

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """One command for the pipe, so that it is changed as a whole or not; then its rule, where there is none."""
        number, card = self._pipes[heading]
        there = has_rule(self._box.run(["ipfw", "list"]), number, card)
        self._box.run(configuration(number, settings))
        if not there:
            self._box.run(["ipfw", "add", str(number), *rule(number, card)])

    def read(self) -> DeviceReading:
        """Read the settings and counters that ipfw shows."""
        listed = self._box.run(["ipfw", "list"])
        numbers = [str(number) for number, _ in self._pipes.values()]
        printed = self._box.run(["ipfw", "pipe", "show", *numbers])
        found = {}
        for heading in HEADINGS:
            number, card = self._pipes[heading]
            if not has_rule(listed, number, card):
                raise DeviceRefusedError(f"rule {number} is not there, so that pipe {number} is empty: reset it first")
            found[heading] = parsed(printed, number)
        return DeviceReading(found["forward"], found["backward"], {})

    def series(self, since: int) -> SeriesRows:
        """Refuses: Dummynet has no counters by time."""
        raise DeviceRefusedError("the box keeps no series")

    def reset(self) -> None:
        """The highest rate, no delay, no loss, 50 slots."""
        queue = Queue(UNSET_SLOTS, None, DropTail())
        assert self._known.queue is not None and self._known.queue.limit_packets is not None
        queue = replace(queue, limit_packets=min(UNSET_SLOTS, self._known.queue.limit_packets.most))
        neutral = DeviceSettings(self._known.rate_bps.most, ConstantDelay(0), False, NoLoss(), 0, 0, queue)
        for heading in self._pipes:
            self.set(heading, neutral)

    @property
    def _box(self) -> ConnectedBox:
        if self._remote is None:
            raise DeviceRefusedError("the first request is describe")
        return self._remote

    def _said(self, *words: str) -> str:
        return self._box.run(words, plain=True).strip()

    def _number(self, variable: str) -> int:
        said = self._said("sysctl", "-n", variable)
        if not said.isdecimal():
            raise DeviceRefusedError(f"sysctl {variable} says {said[:60]}, and no number")
        return int(said)


if __name__ == "__main__":
    serve(SshDummynet())
