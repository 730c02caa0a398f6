"""The keys of a description as pydantic models, a module for each topic: types and meanings, no defaults applied.

Comes in: plain data, as YAML gave it. Goes out: typed values, or pydantic's errors, which `labs.spec` translates.
"""

from labs.spec.fields.description import ContainerPlan, CpuPlan, Description
from labs.spec.fields.link import AccessLink, Direction, GraphLink, Link, OvsPort, Switch
from labs.spec.fields.loss import GilbertElliott, Loss, Markov
from labs.spec.fields.model import Model, OneOf
from labs.spec.fields.queue import Codel, DropTail, Pie, Queue, Red
from labs.spec.fields.topology import (
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

__all__ = [
    "AccessLink",
    "Chain",
    "Codel",
    "ContainerPlan",
    "CpuPlan",
    "Description",
    "Direction",
    "DropTail",
    "Dumbbell",
    "Fishbone",
    "FourDomain",
    "GilbertElliott",
    "Graph",
    "GraphLink",
    "Grid",
    "Link",
    "Loss",
    "Markov",
    "Mesh",
    "Model",
    "OneOf",
    "OvsPort",
    "ParkingLot",
    "Pie",
    "Queue",
    "Red",
    "Ring",
    "Star",
    "Switch",
    "Topology",
]
