"""A file of transfer requests with its lab, as a problem: the links of each request, and the capacities of links.

In: YAML. Out: `TransferRequests`: the problem, and the data that running a plan of it needs. Every mistake is a
DescriptionError with the line and the correction. Pure but for the files that are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ewan.extras.transfers.fields import RequestDescription, TransfersDescription
from ewan.extras.transfers.plan import Problem, TransferRequest
from ewan.generator.scenario.data import ScenarioValue
from ewan.generator.scenario.demand import IPV4_TCP_BYTES
from ewan.generator.scenario.network import Network
from ewan.generator.scenario.runs import lab_of
from ewan.labs import spec as specs
from ewan.labs.base.source import Places, read_yaml
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.base.wording import nearest
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Plan

PAGE = "docs/how-to/experiments/transfers.md"
LEAST = "lab: dumbbell"


@dataclass(frozen=True)
class TransferRequests:
    """A file's requests. `lab`: as it was written."""

    file: Path
    name: str
    lab: ScenarioValue
    description: TransfersDescription
    problem: Problem


def load(file: Path, facts: HostFacts) -> TransferRequests:
    """Reads a file of requests; the lab that it names is relative to it."""
    return parse(specs.text_of(file, "write the path of a file of requests (*.yaml)"), file, facts)


def parse(text: str, file: Path, facts: HostFacts) -> TransferRequests:
    """The requests in `text`, which was read from `file`."""
    raw, places = read_yaml(text, str(file), LEAST)
    if not isinstance(raw, dict):
        raise places.error((), 'a file of requests consists of keys: write "lab:" and "requests:"')
    try:
        description = TransfersDescription.model_validate(raw)
    except ValidationError as error:
        raise specs.translate(error, places, TransfersDescription, PAGE) from None
    stem = file.name.removesuffix(".yaml").removesuffix(".yml").lower().replace("_", "-").replace(".", "-")
    name = description.name or stem
    lab = lab_of(file, name, description.lab, places)
    plan = compile_spec(lab, facts)
    if own := next((node.name for node in plan.nodes if node.machine is not None), None):
        raise places.error(("lab",), f"{own} is a machine of its own, which transfers do not use: leave machine out")
    return TransferRequests(file, name, raw["lab"], description, _problem(description, plan, places))


def _problem(description: TransfersDescription, plan: Plan, places: Places) -> Problem:
    forwarding = Forwarding(plan)
    network = Network(plan, forwarding)
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    capacity: dict[str, float] = {}
    requests = []
    for index, each in enumerate(description.requests):
        _check(index, each, hosts, places)
        segment = network.mtu(each.from_, each.to) - IPV4_TCP_BYTES
        links = {}
        for hop in forwarding.path(each.from_, each.to).hops:
            if rate := forwarding.rate_bps(hop):
                link = f"{hop.link} {hop.direction}"
                links[link], capacity[link] = network.framed(hop) / segment, float(rate)
        if not links and each.rate is None:
            message = "is missing, and no link on the path has a rate: write the largest rate of the application"
            raise places.error(("requests", index, "rate"), message)
        headers = max(links.values(), default=1.0)
        requests.append(
            TransferRequest(
                name=each.name,
                volume_bits=each.volume.bytes * BITS_PER_BYTE,
                release_s=each.start.ns / NS_PER_SECOND,
                deadline_s=math.inf if each.deadline is None else each.deadline.ns / NS_PER_SECOND,
                most_bps=math.inf if each.rate is None else each.rate.bps / headers,
                links=links,
            )
        )
    return Problem(tuple(requests), capacity, description.margin.ns / NS_PER_SECOND)


def _check(index: int, each: RequestDescription, hosts: list[str], places: Places) -> None:
    for key, node in (("from", each.from_), ("to", each.to)):
        if node not in hosts:
            raise places.error(("requests", index, key), f"there is no such host, {nearest(node, hosts)}")
    if each.from_ == each.to:
        raise places.error(("requests", index, "to"), f"{each.from_} sends to itself: write another host")
    if not each.volume.bytes:
        raise places.error(("requests", index, "volume"), 'is nothing: write a volume like "500MB"')
    if each.deadline is not None and each.deadline <= each.start:
        message = f"is not after its start, {each.start}: write a later deadline"
        raise places.error(("requests", index, "deadline"), message)
