"""The link: one file a stage, with what a description says of it, what the plan says, how the one becomes the other,
and its words for people.

Stages, in order: impairments (loss, corruption, duplication), queue, rate, delay line. `keys.py` is the table of all
settings of a direction. The Rust types of emulator/model/src/config.rs have the same kinds and keys as the plan;
`tests/golden/stages.json` lists them for both sides. Whoever handles each kind of a stage matches on its type and ends
with `assert_never`, so that mypy names what a new kind lacks. Keys are in the order of the alphabet, as in the plan.
"""

from ewan.labs.link.change import Change
from ewan.labs.link.delay import (
    ConstantDelay,
    Delay,
    DelayTable,
    GaussMarkovDelay,
    NormalDelay,
    ParetoDelay,
    UniformDelay,
)
from ewan.labs.link.direction import plain_direction
from ewan.labs.link.disciplines import Discipline
from ewan.labs.link.disciplines.classes import Classes, TrafficClass
from ewan.labs.link.disciplines.codel import Codel
from ewan.labs.link.disciplines.drop_tail import DropTail
from ewan.labs.link.disciplines.drr import Drr
from ewan.labs.link.disciplines.dualpi2 import DualPi2
from ewan.labs.link.disciplines.fq_codel import FqCodel
from ewan.labs.link.disciplines.pie import Pie
from ewan.labs.link.disciplines.red import Red
from ewan.labs.link.disciplines.sfq import Sfq
from ewan.labs.link.disciplines.step import Step
from ewan.labs.link.egress import (
    Bare,
    Card,
    Egress,
    Fifo,
    Filter,
    FqPacer,
    GapPacer,
    NoPacer,
    PacedClass,
    Pacer,
    Psp,
    PspPacer,
    Sources,
    Tbf,
    TbfPacer,
)
from ewan.labs.link.framing import Framing
from ewan.labs.link.keys import Direction
from ewan.labs.link.loss import (
    BernoulliLoss,
    BitErrorLoss,
    EveryNthLoss,
    GilbertElliottLoss,
    Loss,
    LossPattern,
    Markov4Loss,
    NoLoss,
)
from ewan.labs.link.queue import Queue
from ewan.labs.link.radio import NO_AGGREGATE, NO_HARQ, Aggregate, Harq
from ewan.labs.link.trace import NoTrace, Trace, TraceOpportunities, TraceRows

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
    "GapPacer",
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
