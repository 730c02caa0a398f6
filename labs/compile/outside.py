"""Links that are external emulators: what the description asks of them, held against what their models can.

Comes in: a link's hardware as it was written, both directions as compiled. Goes out: what the plan says of the device,
or a DescriptionError that says what the device can. No device is asked: the files of drivers list the abilities of
devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewan.labs.compile.facts import HostFacts
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import Abilities, refusal
from ewan.labs.hardware.settings import settings_of
from ewan.labs.link import Direction
from ewan.labs.plan import Card, End, Hardware
from ewan.labs.spec import Spec


def device(
    spec: Spec, host: HostFacts, name: str, link: LinkSettings, forward: Direction, backward: Direction
) -> Hardware:
    """The entry of a link's device in the plan."""
    wanted = link.hardware
    assert wanted is not None
    if host.clock == "virtual":
        raise spec.error(
            link.hardware_path, "a device has a clock of its own: write --runtime netns, or leave hardware out"
        )
    model = wanted.device
    for way, direction in ((link.forward, forward), (link.backward, backward)):
        if found := refusal(direction, model.abilities, own_buffer(way)):
            key, why = found
            raise spec.error(way.path(key), f"on {name}, a {model.name}: {why}", getattr(way.written, key, None))
    if not model.abilities.apart and not _alike(forward, backward, model.abilities):
        raise spec.error(link.hardware_path, f"a {model.name} has both directions alike: write {name} so")
    driver = wanted.driver
    if catalogue.is_path(driver):
        driver = str((spec.folder / driver).absolute())
    return Hardware(name, driver, model.name, wanted.address, wanted.options, model.abilities.queue is None)


def _alike(forward: Direction, backward: Direction, abilities: Abilities) -> bool:
    there, back = (settings_of(each, queue=abilities.queue is not None) for each in (forward, backward))
    return there == back


def check_cards(spec: Spec, links: Sequence[LinkSettings]) -> None:
    """A card is at one end of one link."""
    taken: set[str] = set()
    for link in dict.fromkeys(links):
        for number, port in enumerate(link.hardware.ports if link.hardware is not None else ()):
            if port in taken:
                message = f"{port} is cabled to another link already: write another card"
                raise spec.error((*link.hardware_path, "ports", number), message, port)
            taken.add(port)


def cards(ports: Sequence[str], ends: Sequence[End]) -> list[Card]:
    """The two cards of a device's ports, in the neighbours' nodes."""
    return [Card(port, end, own_mac=False) for port, end in zip(ports, ends, strict=True)]


def own_buffer(way: object) -> bool:
    """Return whether the description leaves out a direction's buffer."""
    paths = getattr(way, "paths", {})
    return "buffer" not in paths
