"""Stage 1, loss: which packets of a direction are lost before they reach the queue.

Probabilities are in parts per billion. The models are described in emulator/model/src/config.rs (`Loss`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, assert_never

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from ewan.labs.base.codec import Variant
from ewan.labs.base.model import Model, OneOf
from ewan.labs.base.units import PPB, Fraction
from ewan.labs.base.values import LONGEST_TABLE, Count, FractionText, read_file, written_as
from ewan.labs.link.context import LinkContext, Obstacle
from ewan.labs.traces import mean

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings


@dataclass(frozen=True, slots=True)
class BitErrors:
    """The probability that a bit is wrong."""

    per_bit: Fraction


def _bit_errors(value: object) -> BitErrors:
    return BitErrors(Fraction.parse(value))


def _pattern(value: object, info: ValidationInfo) -> str:
    """Losses as a text of "0" (through) and "1" (lost), as it is written or, without white space, from a file."""
    if isinstance(value, dict) and set(value) == {"file"}:
        name = str(value["file"])
        pattern = "".join(read_file(name, info).split())
    else:
        name, pattern = "the pattern", str(value)
    if not re.fullmatch(r"[01]+", pattern) or len(pattern) > LONGEST_TABLE:
        raise ValueError(f'{name} is not 1 to {LONGEST_TABLE} of "0" (through) and "1" (lost): write like "0001"')
    return pattern


BitErrorsText = Annotated[BitErrors, PlainValidator(_bit_errors), written_as("fraction", "100ppb")]
PatternText = Annotated[str, PlainValidator(_pattern), written_as("pattern", "0001", "{file: losses.txt}")]


class GilbertElliottKeys(Model, defer_build=True):
    """Losses in bursts, by a chain of two states (Gilbert 1960, Elliott 1963); one step a packet."""

    to_bad: FractionText = Field(description="per packet, from the good state to the bad one", examples=["0.5%"])
    to_good: FractionText = Field(description="per packet, from the bad state to the good one", examples=["20%"])
    loss_bad: FractionText = Field(Fraction.parse("100%"), description="loss in the bad state; 100 % if absent")
    loss_good: FractionText = Field(Fraction(0), description="loss in the good state; 0 % if absent")


class MarkovKeys(Model, defer_build=True):
    """netem's `loss state` (Salsano et al. 2009): 1 received, 2 received in and 3 lost in a burst, 4 a single loss."""

    p13: FractionText = Field(description="from received to lost in a burst", examples=["1%"])
    p31: FractionText = Field(description="from lost in a burst to received", examples=["20%"])
    p32: FractionText = Field(Fraction(0), description="from lost in a burst to received in a burst")
    p23: FractionText = Field(Fraction(0), description="from received in a burst to lost in a burst")
    p14: FractionText = Field(Fraction(0), description="from received to a single loss")


class LossKeys(OneOf, defer_build=True):
    """The loss model of one direction."""

    what: ClassVar[str] = "loss model"
    bernoulli: FractionText | None = Field(None, description="each packet on its own; `loss: 0.1%` says the same")
    bit_errors: BitErrorsText | None = Field(
        None,
        alias="bit-errors",
        description="each bit of what `framing` counts is wrong with this probability p, and a packet with a wrong bit "
        "is lost: of n bytes with 1 - (1 - p)^(8n)",
    )
    gilbert_elliott: GilbertElliottKeys | None = Field(None, alias="gilbert-elliott", description="bursts, two states")
    markov: MarkovKeys | None = Field(None, description="bursts, four states")
    every: Annotated[int, Count(1, 2**63 - 1)] | None = Field(
        None, description="packets n, 2n, 3n … are lost", examples=[100]
    )
    pattern: PatternText | None = Field(None, description="1 lost, 0 through, repeated; or {file: …}")

    @model_validator(mode="before")
    @classmethod
    def _fraction(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"bernoulli": value}

    @property
    def model(self) -> Fraction | BitErrors | GilbertElliottKeys | MarkovKeys | int | str:
        """The model that was written: bernoulli's fraction, one of bits, a chain, every's number, or a pattern."""
        model: Fraction | BitErrors | GilbertElliottKeys | MarkovKeys | int | str = self.choice
        return model


class NoLoss(Variant, tag="none"):
    """No packet is lost here."""


class BernoulliLoss(Variant, tag="bernoulli"):
    """Each packet is lost with the same probability, whatever happened to others."""

    loss_ppb: int


class BitErrorLoss(Variant, tag="bit_errors"):
    """Each bit is wrong with the same probability, and a packet with a wrong bit is lost."""

    bit_ppb: int


class GilbertElliottLoss(Variant, tag="gilbert_elliott", kw_only=True):
    """Two states with a loss probability each, and probabilities to change between them per packet."""

    loss_bad_ppb: int
    loss_good_ppb: int
    to_bad_ppb: int
    to_good_ppb: int


class Markov4Loss(Variant, tag="markov4", kw_only=True):
    """netem's `loss state` (Salsano et al. 2009): 1 received, 2 received in and 3 lost in a burst, 4 a single loss."""

    p13_ppb: int
    p14_ppb: int
    p23_ppb: int
    p31_ppb: int
    p32_ppb: int


class EveryNthLoss(Variant, tag="every_nth"):
    """Packets n, 2n, 3n … are lost."""

    n: int


class LossPattern(Variant, tag="pattern"):
    """`1` is a lost packet, `0` one that passes; repeated for ever."""

    pattern: str


Loss = NoLoss | BernoulliLoss | BitErrorLoss | GilbertElliottLoss | Markov4Loss | EveryNthLoss | LossPattern
NO_LOSS = NoLoss()


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


def compile_loss(way: DirectionSettings, at: LinkContext) -> Loss:
    """DescriptionError for probabilities that leave a state with more than 100 %."""
    traced = way.traced("loss")
    if traced is not None:
        ppb = mean(traced, "loss")
        return BernoulliLoss(ppb) if ppb else NoLoss()
    if way.written.loss is None:
        return NoLoss()
    match way.written.loss.model:
        case Fraction(ppb):
            return BernoulliLoss(ppb) if ppb else NoLoss()
        case BitErrors(Fraction(ppb)):
            return BitErrorLoss(ppb) if ppb else NoLoss()
        case GilbertElliottKeys() as model:
            return GilbertElliottLoss(
                to_bad_ppb=model.to_bad.ppb,
                to_good_ppb=model.to_good.ppb,
                loss_bad_ppb=model.loss_bad.ppb,
                loss_good_ppb=model.loss_good.ppb,
            )
        case MarkovKeys() as model:
            for state, leaves in (("received", ("p13", "p14")), ("lost in a burst", ("p31", "p32"))):
                if sum(getattr(model, key).ppb for key in leaves) > PPB:
                    message = f"{' and '.join(leaves)} leave the state {state} with more than 100%: write smaller ones"
                    raise at.error(way, "loss", message, None)
            return Markov4Loss(
                p13_ppb=model.p13.ppb,
                p31_ppb=model.p31.ppb,
                p32_ppb=model.p32.ppb,
                p23_ppb=model.p23.ppb,
                p14_ppb=model.p14.ppb,
            )
        case int(n):
            return EveryNthLoss(n)
        case str(pattern):
            return LossPattern(pattern)
        case unknown:
            assert_never(unknown)


def obstacle(direction: Direction, way: DirectionSettings) -> Obstacle | None:
    """netem has no losses that are counted."""
    match direction.loss:
        case EveryNthLoss() | LossPattern():
            return "loss", "netem loses at random only: write a fraction, gilbert-elliott or markov"
        case BitErrorLoss():
            return "loss", "netem knows no bit errors: write a fraction, gilbert-elliott or markov"
        case NoLoss() | BernoulliLoss() | GilbertElliottLoss() | Markov4Loss():
            return None
        case _:
            assert_never(direction.loss)
