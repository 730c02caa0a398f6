"""The stages of a link's direction as the plan has them: one module a stage, with its types and its words for people.

Stages, in order: impairments (loss, corruption, duplication), queue, rate, delay line. The Rust types of
emulator/model/src/config.rs have the same kinds and keys; `tests/golden/stages.json` lists them for both sides. How a
description becomes a stage is in labs/compile/stages. Whoever handles each kind of a stage matches on its type and ends
with `assert_never`, so that mypy names what a new kind lacks. Keys are in the order of the alphabet, as in the plan.
"""

from labs.stages.change import Change
from labs.stages.delay import (
    ConstantDelay,
    Delay,
    DelayTable,
    GaussMarkovDelay,
    NormalDelay,
    ParetoDelay,
    UniformDelay,
)
from labs.stages.direction import Direction, Framing, plain_direction
from labs.stages.egress import (
    Bare,
    Card,
    Egress,
    Fifo,
    Filter,
    FqPacer,
    NoPacer,
    PacedClass,
    Pacer,
    Psp,
    PspPacer,
    Sources,
    Tbf,
    TbfPacer,
)
from labs.stages.loss import (
    BernoulliLoss,
    BitErrorLoss,
    EveryNthLoss,
    GilbertElliottLoss,
    Loss,
    LossPattern,
    Markov4Loss,
    NoLoss,
)
from labs.stages.queue import (
    Classes,
    Codel,
    Discipline,
    DropTail,
    Drr,
    DualPi2,
    FqCodel,
    Pie,
    Queue,
    Red,
    Sfq,
    Step,
    TrafficClass,
)
from labs.stages.radio import NO_AGGREGATE, NO_HARQ, Aggregate, Harq
from labs.stages.trace import NoTrace, Trace, TraceOpportunities, TraceRows

__all__ = [
    "NO_AGGREGATE",
    "NO_HARQ",
    "Aggregate",
    "Bare",
    "BernoulliLoss",
    "BitErrorLoss",
    "Card",
    "Change",
    "Classes",
    "Codel",
    "ConstantDelay",
    "Delay",
    "DelayTable",
    "Direction",
    "Discipline",
    "DropTail",
    "Drr",
    "DualPi2",
    "Egress",
    "EveryNthLoss",
    "Fifo",
    "Filter",
    "FqCodel",
    "FqPacer",
    "Framing",
    "GaussMarkovDelay",
    "GilbertElliottLoss",
    "Harq",
    "Loss",
    "LossPattern",
    "Markov4Loss",
    "NoLoss",
    "NoPacer",
    "NoTrace",
    "NormalDelay",
    "PacedClass",
    "Pacer",
    "ParetoDelay",
    "Pie",
    "Psp",
    "PspPacer",
    "Queue",
    "Red",
    "Sfq",
    "Sources",
    "Step",
    "Tbf",
    "TbfPacer",
    "Trace",
    "TraceOpportunities",
    "TraceRows",
    "TrafficClass",
    "UniformDelay",
    "plain_direction",
]
