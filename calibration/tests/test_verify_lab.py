"""The one verification of `ewan lab`, `ewan lab verify` and experiments waits for the routes before it measures."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ewan.calibration import LiveLab, certificates, verify_lab
from ewan.labs import routes
from ewan.labs.base import codec
from ewan.labs.base.product import LIBRARY
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.routing_documents import Convergence
from ewan.labs.runtime.base import Answer, LabState, RemoteMachine, Seen
from ewan.labs.runtime.inspections import Inspection
from ewan.labs.runtime.probe_documents import FailedResult, Probe, ProbeAnswer
from ewan.labs.runtime.requests import LinkRequest
from ewan.labs.runtime.state_documents import Head
from ewan.labs.spec import load

CONTEXT = Context.of(os.environ)
SETTLED = {"format": "ewan-routing/1", "protocol": "ospf", "converged": True, "after_ns": 3, "waited_ns": 2}
NOTHING: dict[str, Any] = {"unreachable": [], "cut_off": [], "astray": []}


class Slow:
    """A lab whose routes are there only when somebody has waited for them."""

    def __init__(self, found: Mapping[str, Any] = SETTLED) -> None:
        self.found = {**NOTHING, **found}
        self.waited = False
        self.probed = 0

    def converge(self, name: str, longest_s: float = 120.0) -> Convergence:
        self.waited = True
        return codec.from_data(Convergence, self.found, "routing")

    def control(self, name: str, target: int | str, request: LinkRequest[Answer]) -> Answer:
        assert self.waited, "asked before the routes were there"
        raise RuntimeError("nothing is there")

    def load(self, name: str) -> LabState:
        return LabState(
            Head("ewan-manifest/1", "0"),
            compile(load(LIBRARY / "ring-ospf.lab.yaml"), HostFacts(cpus=(0, 1), networks=())),
        )

    def versions(self, name: str) -> dict[str, str]:
        return {"runtime": "none"}

    def elsewhere(self, name: str) -> dict[str, RemoteMachine]:
        return {}

    def inspect(self, name: str, what: Inspection[Answer]) -> list[Answer]:
        return []

    def probe(
        self, name: str, probes: Sequence[Probe], tell: Callable[[str], None], seen: Seen | None = None
    ) -> ProbeAnswer:
        assert self.waited, "probes were sent before the routes were there"
        self.probed += 1
        return ProbeAnswer(tuple(FailedResult(each.name, 1, "nothing is there") for each in probes))


@pytest.fixture
def ring() -> Plan:
    return compile(load(LIBRARY / "ring-ospf.lab.yaml"), HostFacts(cpus=(0, 1), networks=()))


def test_an_experiments_certificate_waits_for_routing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ring: Plan
) -> None:
    lab = Slow()
    monkeypatch.setattr(Context, "live", lambda context: lab)
    certificate = certificates.certify(CONTEXT, ring, tmp_path, False, threading.Event())
    assert lab.probed == 1
    assert certificate.routing == lab.found


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            {"converged": False, "unreachable": [{"from": "host1", "to": "host3"}], "waited_ns": 120 * 10**9},
            "^OSPF has not converged after 120s, no route from host1 to host3$",
        ),
        (
            {"converged": False, "astray": [{"from": "host1", "to": "host3"}]},
            "^OSPF has not converged after 2ns, a detour from host1 to host3$",
        ),
        ({"cut_off": [{"from": "host1", "to": "host3"}]}, "^no path leads from host1 to host3, a link is down$"),
    ],
)
def test_nothing_is_measured_without_routes(ring: Plan, found: Mapping[str, Any], says: str) -> None:
    lab = Slow({**SETTLED, **found})
    with pytest.raises(routes.NotConvergedError, match=says):
        verify_lab(ring, LiveLab(lab, CONTEXT.binary))
    assert not lab.probed


def test_static_routes_are_not_waited_for() -> None:
    plan = compile(load(LIBRARY / "dumbbell.lab.yaml"), HostFacts(cpus=(0, 1), networks=()))
    lab = Slow()
    assert routes.converged(lab, plan) is None and not lab.waited
