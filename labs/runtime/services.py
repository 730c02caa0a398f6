"""The programs that a plan's services need of this machine, in all clocks and runtimes but that of containers.

In: a plan. Out: nothing, or LabError with the package that has what is missing.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from ewan.labs.plan import Plan

# Where emulator/lab/src/services.rs looks for them.
SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr:/usr/libexec/frr"
_OVS = ("ovs-", "ovsdb-")
_PACKAGES = {"dnsmasq": "apt install dnsmasq-base"}
OURSELVES = "ewan-node"


def check_programs(plan: Plan) -> None:
    """Before anything is made."""
    for node in plan.nodes:
        for service in node.services:
            program = service.argv[0]
            if program == OURSELVES or shutil.which(program, path=SEARCH) is not None:
                continue
            if node.kind == "router" and plan.routing != "static" and program not in _PACKAGES:
                raise LabError(
                    f"lab {plan.lab}: routing {plan.routing} needs FRRouting, and there is no {program} here: "
                    "apt install frr"
                )
            known = "apt install openvswitch-switch" if program.startswith(_OVS) else _PACKAGES.get(program)
            remedy = known or f"looked for in {SEARCH}"
            raise LabError(f"lab {plan.lab}: node {node.name} needs {program}, which is not here: {remedy}")
