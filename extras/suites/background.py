"""Background traffic of HSTTS, which the poster names and does not define: its words, and its steps. Pure.

In: a word (`WMI`, `CBR`, `VBR-Pareto`), the bottleneck's rate, the two nodes. Out: the share of the bottleneck that it
fills each way, steps of a scenario, and a sentence for its description. Web traffic is files of Pareto size (the JGN2
experiments' law) that arrive by Poisson's law. CBR and VBR are UDP: packets at constant times, or at random ones whose
law the poster calls the shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.generator.scenario.data import ScenarioMapping
from ewan.labs.base.units import Duration, Rate, parse_volume, time_for

NONE = "0"
FILE = "100kB"  # mean; with its law as the files of the JGN2 experiments
TAIL = 1.3
"""Pareto's shape of web files (JGN2)."""
CONGESTION = "cubic"
PACKET = "1470B"  # of UDP payload: iperf's
_BURSTS = {"Pareto": 1.5, "Weibull": 0.5}  # shapes: an infinite variance; ten times Poisson's


@dataclass(frozen=True, slots=True)
class Background:
    """`share`: of the bottleneck, each way. `law`: of the times between packets, "" for web traffic."""

    share: Exact
    law: str = ""

    @property
    def is_web(self) -> bool:
        """Files over TCP; else packets of UDP."""
        return not self.law


BACKGROUND: Mapping[str, Background] = {
    "WMI": Background(Exact("0.1")),
    "WMII": Background(Exact("0.3")),
    "CBR": Background(Exact("0.1"), "constant"),
    "VBR-Poisson": Background(Exact("0.1"), "Poisson"),
    "VBR-Pareto": Background(Exact("0.1"), "Pareto"),
    "VBR-Weibull": Background(Exact("0.1"), "Weibull"),
}
WORDS = (NONE, *BACKGROUND)
_SHORT = {"vbr": "vbr-poisson"}


def named(text: str) -> str | None:
    """The word that is meant, in any letters; VBR without an addition is Poisson's. None for an unknown one."""
    wanted = _SHORT.get(text.lower(), text.lower())
    return next((word for word in WORDS if word.lower() == wanted), None)


def share(word: str) -> Exact:
    """The share of the bottleneck, each way."""
    return BACKGROUND[word].share if word in BACKGROUND else Exact(0)


def steps(word: str, rate: Rate, ends: tuple[str, str], length: str) -> list[ScenarioMapping]:
    """Steps of background traffic both ways between the two nodes of each pair, for `length`; `rate`: each pair's part
    of the bottleneck. Empty without background traffic."""
    if word not in BACKGROUND:
        return []
    wanted, (left, right) = BACKGROUND[word], ends
    # Laws of packets are steps of their own, so that a sweep may have several.
    name = "background" if wanted.is_web else word.lower()
    traffic = _web(wanted, rate) if wanted.is_web else _packets(wanted, rate)
    return [
        {"name": f"{name}-{side}", "role": "background", "from": source, "to": sink, "for": length, **traffic}
        for side, source, sink in (("left", left, right), ("right", right, left))
    ]


def _web(wanted: Background, rate: Rate) -> ScenarioMapping:
    size = parse_volume(FILE)
    interval = Duration(time_for(size.bytes, int(rate.bps * wanted.share)))
    law: ScenarioMapping = {"pareto": {"mean": FILE, "shape": TAIL, "most": "2MB"}}
    return {
        "congestion": CONGESTION,
        "arrivals": {"interval": {"exponential": {"mean": str(interval)}}, "size": law},
    }


def _packets(wanted: Background, rate: Rate) -> ScenarioMapping:
    filled = Rate(int(rate.bps * wanted.share))
    if wanted.law == "constant":
        return {"udp": {"size": PACKET, "rate": str(filled)}}
    mean = str(Duration(time_for(parse_volume(PACKET).bytes, filled.bps)))
    laws: dict[str, ScenarioMapping] = {"Poisson": {"exponential": {"mean": mean}}}
    laws |= {law: {law.lower(): {"mean": mean, "shape": shape}} for law, shape in _BURSTS.items()}
    return {"udp": {"size": PACKET, "interval": laws[wanted.law]}}


def about(word: str) -> str:
    """The words about it in the description of a scenario."""
    wanted = BACKGROUND[word]
    fills = f"{float(wanted.share * 100):g} % of the bottleneck each way"
    if wanted.is_web:
        what = (
            f"files of Pareto size (mean {FILE}, shape {TAIL}, cut at twenty means) arrive by Poisson's law, {fills}, "
            f"with {CONGESTION} whatever is tested"
        )
    else:
        times = "at constant times" if wanted.law == "constant" else f"at random times ({wanted.law})"
        shape = f", shape {_BURSTS[wanted.law]}" if wanted.law in _BURSTS else ""
        what = f"UDP packets of {PACKET} {times}{shape}, {fills}"
    return f"Background {word}, which the poster names and does not define: {what}."
