"""The keys of a description as pydantic models, a module for each topic: types and meanings, no defaults applied. Those
of one direction of a link are in labs/link.

Comes in: plain data, as YAML gave it. Goes out: typed values, or pydantic's errors, which `ewan.labs.spec` translates.
"""

from ewan.labs.spec.fields.card import ExternalKeys
from ewan.labs.spec.fields.description import ContainerPlan, CpuPlan, Description, RouteKeys
from ewan.labs.spec.fields.hardware import HardwareKeys
from ewan.labs.spec.fields.host import Host
from ewan.labs.spec.fields.link import AccessLink, GraphLink, LinkKeys, OvsPort, SingleLink, Switch
from ewan.labs.spec.fields.node import Kinds, NodeKeys, Startup
from ewan.labs.spec.fields.pacing import HostPacing, Pacing
from ewan.labs.spec.fields.stack import PROFILES, Profile, StackKeys
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
from ewan.labs.spec.fields.tunnel import TunnelKeys

__all__ = [
    "PROFILES",
    "AccessLink",
    "Chain",
    "ContainerPlan",
    "CpuPlan",
    "Description",
    "Dumbbell",
    "ExternalKeys",
    "Fishbone",
    "FourDomain",
    "Graph",
    "GraphLink",
    "Grid",
    "HardwareKeys",
    "Host",
    "HostPacing",
    "Kinds",
    "LinkKeys",
    "Mesh",
    "NodeKeys",
    "OvsPort",
    "Pacing",
    "ParkingLot",
    "Profile",
    "Ring",
    "RouteKeys",
    "SingleLink",
    "StackKeys",
    "Star",
    "Startup",
    "Switch",
    "Topology",
    "TunnelKeys",
]
