"""The keys of loss models."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from ewan.labs.base.units import Fraction
from ewan.labs.spec.fields.model import Model, OneOf
from ewan.labs.spec.values import BitErrors, BitErrorsText, Count, FractionText, PatternText


class GilbertElliott(Model):
    """Losses in bursts, by a chain of two states (Gilbert 1960, Elliott 1963); one step a packet."""

    to_bad: FractionText = Field(description="per packet, from the good state to the bad one", examples=["0.5%"])
    to_good: FractionText = Field(description="per packet, from the bad state to the good one", examples=["20%"])
    loss_bad: FractionText = Field(Fraction.parse("100%"), description="loss in the bad state; 100 % if absent")
    loss_good: FractionText = Field(Fraction(0), description="loss in the good state; 0 % if absent")


class Markov(Model):
    """netem's `loss state` (Salsano et al. 2009): 1 received, 2 received in and 3 lost in a burst, 4 lost alone."""

    p13: FractionText = Field(description="from received to lost in a burst", examples=["1%"])
    p31: FractionText = Field(description="from lost in a burst to received", examples=["20%"])
    p32: FractionText = Field(Fraction(0), description="from lost in a burst to received in a burst")
    p23: FractionText = Field(Fraction(0), description="from received in a burst to lost in a burst")
    p14: FractionText = Field(Fraction(0), description="from received to lost alone")


class Loss(OneOf):
    """The loss model of one direction."""

    what: ClassVar[str] = "loss model"
    bernoulli: FractionText | None = Field(None, description="each packet on its own; `loss: 0.1%` says the same")
    bit_errors: BitErrorsText | None = Field(
        None,
        alias="bit-errors",
        description="each bit of what `framing` counts is wrong with this probability p, and a packet with a wrong bit "
        "is lost: of n bytes with 1 - (1 - p)^(8n)",
    )
    gilbert_elliott: GilbertElliott | None = Field(None, alias="gilbert-elliott", description="bursts, two states")
    markov: Markov | None = Field(None, description="bursts, four states")
    every: Annotated[int, Count(1, 2**63 - 1)] | None = Field(
        None, description="packets n, 2n, 3n … are lost", examples=[100]
    )
    pattern: PatternText | None = Field(None, description="1 lost, 0 through, repeated; or {file: …}")

    @model_validator(mode="before")
    @classmethod
    def _fraction(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"bernoulli": value}

    @property
    def model(self) -> Fraction | BitErrors | GilbertElliott | Markov | int | str:
        """The model that was written: bernoulli's fraction, one of bits, a chain, every's number, or a pattern."""
        model: Fraction | BitErrors | GilbertElliott | Markov | int | str = self.choice
        return model
