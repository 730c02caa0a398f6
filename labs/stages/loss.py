"""Stage 1, loss: which packets of a direction are lost before they reach the queue.

Probabilities are in parts per billion. The models are described in emulator/model/src/config.rs (`Loss`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from ewan.labs.base.units import Fraction


@dataclass(frozen=True, slots=True)
class NoLoss:
    """No packet is lost here."""

    kind: Literal["none"] = field(default="none", init=False)


@dataclass(frozen=True, slots=True)
class BernoulliLoss:
    """Each packet is lost with the same probability, whatever happened to others."""

    kind: Literal["bernoulli"] = field(default="bernoulli", init=False)
    loss_ppb: int


@dataclass(frozen=True, slots=True)
class BitErrorLoss:
    """Each bit is wrong with the same probability, and a packet with a wrong bit is lost."""

    kind: Literal["bit_errors"] = field(default="bit_errors", init=False)
    bit_ppb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliottLoss:
    """Two states with a loss probability each, and probabilities to change between them per packet."""

    kind: Literal["gilbert_elliott"] = field(default="gilbert_elliott", init=False)
    loss_bad_ppb: int
    loss_good_ppb: int
    to_bad_ppb: int
    to_good_ppb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Markov4Loss:
    """netem's `loss state` (Salsano et al. 2009): 1 received, 2 received in and 3 lost in a burst, 4 lost alone."""

    kind: Literal["markov4"] = field(default="markov4", init=False)
    p13_ppb: int
    p14_ppb: int
    p23_ppb: int
    p31_ppb: int
    p32_ppb: int


@dataclass(frozen=True, slots=True)
class EveryNthLoss:
    """Packets n, 2n, 3n … are lost."""

    kind: Literal["every_nth"] = field(default="every_nth", init=False)
    n: int


@dataclass(frozen=True, slots=True)
class LossPattern:
    """`1` is a lost packet, `0` one that passes; repeated for ever."""

    kind: Literal["pattern"] = field(default="pattern", init=False)
    pattern: str


Loss = NoLoss | BernoulliLoss | BitErrorLoss | GilbertElliottLoss | Markov4Loss | EveryNthLoss | LossPattern


def words(loss: Loss) -> str:
    """The model with its parameters, as tables say it; empty for none."""
    match loss:
        case NoLoss():
            return ""
        case BernoulliLoss(ppb):
            return str(Fraction(ppb))
        case BitErrorLoss(ppb):
            return f"bit errors {Fraction(ppb)}"
        case EveryNthLoss(n):
            return f"every {n}th"
        case LossPattern(pattern):
            return f"pattern of {len(pattern)}"
        case GilbertElliottLoss():
            return f"gilbert-elliott {_probabilities(loss, ('to_bad', 'to_good', 'loss_bad', 'loss_good'))}"
        case Markov4Loss():
            return f"markov4 {_probabilities(loss, ('p13', 'p31', 'p32', 'p23', 'p14'))}"
        case _:
            assert_never(loss)


def _probabilities(model: GilbertElliottLoss | Markov4Loss, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {Fraction(getattr(model, f'{name}_ppb'))}" for name in names)
