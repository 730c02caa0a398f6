"""The keys of a description as pydantic models, a module for each topic: types and meanings, no defaults applied.

Comes in: plain data, as YAML gave it. Goes out: typed values, or pydantic's errors, which `ewan.labs.spec` translates.
"""

from ewan.labs.spec.fields.bucket import Police
from ewan.labs.spec.fields.card import External
from ewan.labs.spec.fields.description import ContainerPlan, CpuPlan, Description
from ewan.labs.spec.fields.displace import Displace
from ewan.labs.spec.fields.hardware import Hardware
from ewan.labs.spec.fields.host import Host
from ewan.labs.spec.fields.link import AccessLink, Direction, GraphLink, Link, OvsPort, SingleLink, Switch
from ewan.labs.spec.fields.loss import GilbertElliott, Loss, Markov
from ewan.labs.spec.fields.model import Model, OneOf
from ewan.labs.spec.fields.node import Kinds, Node, Startup
from ewan.labs.spec.fields.pacing import HostPacing, Pacing
from ewan.labs.spec.fields.queue import (
    Codel,
    DropTail,
    Drr,
    DualPi2,
    FqCodel,
    Pie,
    Priority,
    Queue,
    Red,
    Sfq,
    Step,
    TrafficClass,
    Weighted,
    WeightedClass,
)
from ewan.labs.spec.fields.radio import Aggregate, Harq
from ewan.labs.spec.fields.stack import PROFILES, Profile, Stack
from ewan.labs.spec.fields.topology import (
    Chain,
    Dumbbell,
    Fishbone,
    FourDomain,
    Graph,
    Grid,
    Mesh,
    ParkingLot,
    Ring,
    Star,
    Topology,
)
from ewan.labs.spec.fields.trace import Trace

__all__ = [
    "PROFILES",
    "AccessLink",
    "Aggregate",
    "Chain",
    "Codel",
    "ContainerPlan",
    "CpuPlan",
    "Description",
    "Direction",
    "Displace",
    "DropTail",
    "Drr",
    "DualPi2",
    "Dumbbell",
    "External",
    "Fishbone",
    "FourDomain",
    "FqCodel",
    "GilbertElliott",
    "Graph",
    "GraphLink",
    "Grid",
    "Hardware",
    "Harq",
    "Host",
    "HostPacing",
    "Kinds",
    "Link",
    "Loss",
    "Markov",
    "Mesh",
    "Model",
    "Node",
    "OneOf",
    "OvsPort",
    "Pacing",
    "ParkingLot",
    "Pie",
    "Police",
    "Priority",
    "Profile",
    "Queue",
    "Red",
    "Ring",
    "Sfq",
    "SingleLink",
    "Stack",
    "Star",
    "Startup",
    "Step",
    "Switch",
    "Topology",
    "Trace",
    "TrafficClass",
    "Weighted",
    "WeightedClass",
]
