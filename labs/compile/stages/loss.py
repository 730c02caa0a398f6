"""The loss model of a direction, as it was written."""

from __future__ import annotations

from typing import assert_never

from ewan.labs.base.units import PPB, Fraction
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.spec import fields
from ewan.labs.spec.values import BitErrors
from ewan.labs.stages import (
    BernoulliLoss,
    BitErrorLoss,
    EveryNthLoss,
    GilbertElliottLoss,
    Loss,
    LossPattern,
    Markov4Loss,
    NoLoss,
)
from ewan.labs.traces import mean


def compile_loss(way: Settings, at: LinkContext) -> Loss:
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
        case fields.GilbertElliott() as model:
            return GilbertElliottLoss(
                to_bad_ppb=model.to_bad.ppb,
                to_good_ppb=model.to_good.ppb,
                loss_bad_ppb=model.loss_bad.ppb,
                loss_good_ppb=model.loss_good.ppb,
            )
        case fields.Markov() as model:
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


def obstacle(loss: Loss) -> Obstacle | None:
    """netem has no losses that are counted."""
    match loss:
        case EveryNthLoss() | LossPattern():
            return "loss", "netem loses at random only: write a fraction, gilbert-elliott or markov"
        case BitErrorLoss():
            return "loss", "netem knows no bit errors: write a fraction, gilbert-elliott or markov"
        case NoLoss() | BernoulliLoss() | GilbertElliottLoss() | Markov4Loss():
            return None
        case _:
            assert_never(loss)
