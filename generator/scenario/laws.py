"""Laws of random times and sizes: as people write them, as the generator's request says them, and as drawn here.

Comes in: `100ms`, or `{pareto: {mean: 100kB, shape: 1.3}}`. Goes out: typed laws, their JSON with the unit of the key
that holds it (ns or bytes), their mean, and draws from a seeded stream for times and sizes that are decided before a
run begins."""

from __future__ import annotations

import math
import random
import re
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, assert_never, cast

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from ewan.labs.base.model import Model, OneOf
from ewan.labs.base.units import NS_PER_SECOND, Duration, Size, UnitError, parse_volume
from ewan.labs.record.traffic import (
    ConstantLaw,
    ExponentialLaw,
    GammaLaw,
    NormalLaw,
    ParetoLaw,
    RequestLaw,
    UniformLaw,
    WeibullLaw,
)

DAY_NS = 86_400 * NS_PER_SECOND

Quantity = TypeVar("Quantity")


def _time(value: object) -> Duration:
    """A duration up to a day: events in a run may take longer than those of a packet."""
    return Duration.parse(value, DAY_NS)


def _text(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


def _number(value: object) -> float:
    text = "" if isinstance(value, bool) else str(value)
    if not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,20})?|\.[0-9]{1,20}", text) or float(text) == 0:
        raise UnitError('write a number above 0 without a unit, like "1.3"')
    return float(text)


def number_or(amount: float) -> int | float:
    """Whole numbers as such."""
    return int(amount) if float(amount).is_integer() else amount


TimeText = Annotated[Duration, PlainValidator(_time), _text("duration", "10s")]
VolumeText = Annotated[Size, PlainValidator(parse_volume), _text("size or volume", "500kB", "30Gbit")]
ShapeText = Annotated[float, PlainValidator(_number), _text("number", "1.3")]

LawKind = Literal["constant", "uniform", "exponential", "pareto", "weibull", "normal", "gamma"]

_MOST = "no draw is larger; no such bound if absent"


class Uniform(Model, Generic[Quantity]):
    """A uniform law: from `low` to `high`, each as likely."""

    low: Quantity = Field(description="the least")
    high: Quantity = Field(description="the most")
    most: Quantity | None = Field(None, description=_MOST)


class Exponential(Model, Generic[Quantity]):
    """Times between arrivals by Poisson."""

    mean: Quantity = Field(description="its mean")
    most: Quantity | None = Field(None, description=_MOST)


class Shaped(Model, Generic[Quantity]):
    """A law with a mean and a shape: Pareto, Weibull or gamma."""

    mean: Quantity = Field(description="its mean; Pareto's scale is mean·(shape-1)/shape")
    shape: ShapeText = Field(description="above 1 for pareto, above 0 for weibull and gamma")
    most: Quantity | None = Field(None, description=_MOST)


class Normal(Model, Generic[Quantity]):
    """Normal, with draws below 0 set to 0."""

    mean: Quantity = Field(description="its mean")
    deviation: Quantity = Field(description="its standard deviation; draws below 0 become 0")
    most: Quantity | None = Field(None, description=_MOST)


class Law(OneOf, Generic[Quantity]):
    """One of the laws, of times or of sizes."""

    what: ClassVar[str] = "law"
    model_config = ConfigDict(json_schema_extra={"words": "law"})
    constant: Quantity | None = Field(None, description="always the same; a plain `10ms` means it too")
    uniform: Uniform[Quantity] | None = Field(None, description="from `low` to `high`")
    exponential: Exponential[Quantity] | None = Field(None, description="of Poisson arrivals")
    pareto: Shaped[Quantity] | None = Field(None, description="heavy tail, `shape` above 1")
    weibull: Shaped[Quantity] | None = Field(None, description="`shape` below 1: heavier than exponential")
    normal: Normal[Quantity] | None = Field(None, description="cut at 0")
    gamma: Shaped[Quantity] | None = Field(None, description="`shape` 1 is exponential")

    @property
    def kind(self) -> LawKind:
        """The kind of the law."""
        return cast(LawKind, super().kind)

    @model_validator(mode="before")
    @classmethod
    def _constant(cls, value: Any) -> Any:
        return value if isinstance(value, (dict, Law)) else {"constant": value}

    @model_validator(mode="after")
    def _in_range(self) -> Law[Quantity]:
        """Refuses parameters that each key allows but that make no law."""
        given = self.choice
        if self.kind == "uniform" and amount(given.low) >= amount(given.high):
            raise ValueError(f'uniform is from less to more: write a "high" above "{given.low}"')
        if self.kind not in ("constant", "uniform") and not amount(given.mean):
            raise ValueError(f'{self.kind} has no mean of 0: write a larger "mean"')
        if self.kind == "pareto" and given.shape <= 1:
            raise ValueError('a Pareto law of shape 1 or less has no mean: write a "shape" above 1, like "1.3"')
        if self.kind != "constant" and given.most is not None and amount(given.most) < least(self):
            raise ValueError(f'"most" of {given.most} is below all that {self.kind} draws: write a larger one')
        return self


TimeLaw = Law[TimeText]
SizeLaw = Law[VolumeText]

Either = Law[Any]


def constant(value: Duration | Size) -> Any:
    """A law that always gives `value`, of either quantity."""
    return (TimeLaw if isinstance(value, Duration) else SizeLaw).model_validate({"constant": str(value)})


def amount(value: Any) -> int:
    """Nanoseconds or bytes."""
    whole: int = value.ns if isinstance(value, Duration) else value.bytes
    return whole


def least(law: Either) -> float:
    """The least value that can be drawn, in the law's own unit."""
    given = law.choice
    match law.kind:
        case "constant":
            return amount(given)
        case "uniform":
            return amount(given.low)
        case "pareto":
            return amount(given.mean) * (float(given.shape) - 1) / float(given.shape)
        case "exponential" | "weibull" | "normal" | "gamma":
            return 0
        case never:
            assert_never(never)


def mean(law: Either) -> float:
    """The mean of a law in ns or bytes, without regard to `most`."""
    given = law.choice
    match law.kind:
        case "constant":
            return amount(given)
        case "uniform":
            return (amount(given.low) + amount(given.high)) / 2
        case "exponential" | "pareto" | "weibull" | "normal" | "gamma":
            return amount(given.mean)
        case never:
            assert_never(never)


def request(law: Either) -> RequestLaw:
    """The law in the generator's request."""
    given = law.choice
    most = None if law.kind == "constant" or given.most is None else amount(given.most)
    match law.kind:
        case "constant":
            return ConstantLaw(amount(given))
        case "uniform":
            return UniformLaw(amount(given.low), amount(given.high), most)
        case "exponential":
            return ExponentialLaw(amount(given.mean), most)
        case "normal":
            return NormalLaw(amount(given.mean), amount(given.deviation), most)
        case "pareto":
            return ParetoLaw(amount(given.mean), number_or(given.shape), most)
        case "weibull":
            return WeibullLaw(amount(given.mean), number_or(given.shape), most)
        case "gamma":
            return GammaLaw(amount(given.mean), number_or(given.shape), most)
        case never:
            assert_never(never)


def draw(law: Either, stream: random.Random) -> int:
    """One value, rounded to whole ns or bytes; by the inverse of the distribution but for gamma."""
    given = law.choice
    kind = law.kind
    if kind == "constant":
        return amount(given)
    share = 1 - stream.random()  # above 0, at most 1
    match kind:
        case "uniform":
            value = amount(given.low) + share * (amount(given.high) - amount(given.low))
        case "exponential":
            value = -amount(given.mean) * math.log(share)
        case "pareto":
            value = least(law) * share ** (-1 / given.shape)
        case "weibull":
            value = amount(given.mean) / math.gamma(1 + 1 / given.shape) * (-math.log(share)) ** (1 / given.shape)
        case "normal":
            inner = min(max(share, 2.0**-53), 1 - 2.0**-53)
            value = max(0.0, NormalDist(amount(given.mean), amount(given.deviation) or 2.0**-30).inv_cdf(inner))
        case "gamma":
            value = stream.gammavariate(given.shape, amount(given.mean) / given.shape)
        case never:
            assert_never(never)
    most = math.inf if given.most is None else amount(given.most)
    return round(min(value, most))


def drawn_mean(law: Either) -> float:
    """The mean of the draws, in ns or bytes, where `most` cuts a law with a heavy or an exponential tail."""
    if law.kind == "constant":
        return amount(law.choice)
    whole, most = mean(law), math.inf if law.choice.most is None else float(amount(law.choice.most))
    if law.kind == "pareto" and math.isfinite(most):
        shape, scale = float(law.choice.shape), float(least(law))
        return whole - most * math.pow(scale / most, shape) / (shape - 1)
    if law.kind == "exponential":
        return whole * (1 - math.exp(-most / whole))
    return min(whole, most)


def share_above(law: Either, value: float) -> float:
    """The share of draws above `value`; for laws without a closed form, as if all draws were their mean."""
    given = law.choice
    if law.kind != "constant" and given.most is not None and value >= amount(given.most):
        return 0.0
    match law.kind:
        case "exponential":
            return math.exp(-value / amount(given.mean))
        case "pareto":
            return min((least(law) / value) ** float(given.shape), 1.0) if value > 0 else 1.0
        case "uniform":
            low, high = amount(given.low), amount(given.high)
            return min(max((high - value) / (high - low), 0.0), 1.0)
        case "constant" | "weibull" | "normal" | "gamma":
            return float(mean(law) > value)
        case never:
            assert_never(never)
