"""The common part of the texts for simulators: their templates, and the notes in each of their heads.

In: a template's name and its values. Out: text. Templates are in extras/simulators/templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ewan.extras.simulators.flows import SimulatedTraffic
from ewan.extras.simulators.network import SimulatedNetwork
from ewan.labs.base.units import Duration
from ewan.labs.spec import DescriptionError

TEMPLATES = Path(__file__).resolve().parent / "templates"
FEWEST_NOTED_NS = 1  # halves of an odd RTT differ by as much


def render(template: str, **values: Any) -> str:
    """A template of this package with `values` in it."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["quoted"] = quoted
    return environment.get_template(template).render(**values)


def quoted(text: str) -> str:
    """A word of C++ or Tcl; names of nodes, links and flows hold nothing that either reads."""
    return f'"{text}"'


def check_tree(network: SimulatedNetwork, simulator: str) -> None:
    """DescriptionError where packets could take more than one path: a simulator might choose another."""
    if not network.is_tree:
        message = f"lab {network.lab}: has more than one path between hosts, and {simulator} may choose another"
        raise DescriptionError(f"{message}: write a lab without rings")


def asymmetric(network: SimulatedNetwork) -> list[str]:
    """A note for each link whose two delays differ, for simulators that have one delay for both."""
    return [
        f"{link.name}: {Duration(link.forward.delay_ns)} there and {Duration(link.backward.delay_ns)} back are half of "
        "the sum each: RTTs are the same"
        for link in network.links
        if abs(link.forward.delay_ns - link.backward.delay_ns) > FEWEST_NOTED_NS
    ]


def common_notes(traffic: SimulatedTraffic) -> list[str]:
    """The differences from the lab in every simulator."""
    return [
        "Hosts wait for no random time before a packet, as those of the virtual clock do (`dither`).",
        "A host's own card drops nothing: Linux holds its flows back before the card is full.",
        *(f"{note[:1].upper()}{note[1:]}." for note in traffic.notes),
    ]
