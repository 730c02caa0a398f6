"""How long a lab of containers takes to come up, beside containerlab alone with as many bare containers and wires.

In: a container engine with our images, containerlab, root. Out: seconds, and a table of them. The bare containers run
`sleep`; they have no addresses, no routes and no emulation, and nobody waits for them: what is above them is ours.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ewan.labs import host, images
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.render import containerlab
from ewan.labs.runtime import clab, container_engine, containers
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.container_engine import ContainerEngine
from ewan.labs.runtime.namespaces import NAMESPACES
from ewan.labs.spec import from_template
from tests.bench import timed

HOSTS = 50
BARE = "sleep infinity"
Sheet = tuple[str, list[str], list[list[str]]]


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Seconds by topology: ours up and down, containerlab's deployment alone. `quick`: the dumbbell alone."""
    path, asked = clab.binary(), container_engine.find()
    with clab.version_of(path) as version:
        versions = {asked.kind: asked.version(), "containerlab": version()}
    found = []
    for topology, options in {"dumbbell": {}, **({} if quick else {"star": {"arms": str(HOSTS)}})}.items():
        name = f"bench{os.getpid()}"  # of this run alone: a lab called bench is somebody's
        plan = compile(from_template(topology, {**options, "name": name, "rate": "100Mbit/s"}), host.facts())
        say(f"{topology} of {len(plan.nodes)} containers")
        found.append(
            {
                "topology": topology,
                "containers": len(plan.nodes),
                **ours(context, plan),
                **bare(context, plan, path, asked),
            }
        )
    return {"versions": versions, "labs": found}


def ours(context: Context, plan: Plan) -> dict[str, float]:
    """How long our runtime takes to bring the plan's lab up, and to take it down (s)."""
    runtime = context.live("containerlab")
    try:
        up_s = timed(lambda: runtime.up(plan))
    finally:
        down_s = timed(lambda: runtime.down(plan.lab))
    return {"up_s": up_s, "down_s": down_s}


def bare(context: Context, plan: Plan, path: Path, asked: ContainerEngine) -> dict[str, float]:
    """The same topology file without what makes nodes of its containers."""
    described = yaml.safe_load(containerlab.render(plan, directory=".", version=images.TAG))
    described["topology"]["defaults"].pop("binds")
    for node in described["topology"]["nodes"].values():
        node["entrypoint"] = BARE
        for key in ("exec", "stages", "binds"):
            node.pop(key, None)
    place = Path(tempfile.mkdtemp(prefix="ewan-bench-"))
    names = [containers.name_of(plan.lab, node) for node in described["topology"]["nodes"]]
    topology = place / f"{plan.lab}.clab.yml"
    topology.write_text(yaml.safe_dump(described, sort_keys=False))
    try:
        deploy_s = timed(
            lambda: clab.deploy(node_binary(context.binary), path, topology, asked, lambda: None, lambda count: None)
        )
    finally:
        asked.remove([each.identity for each in asked.containers(names).values()])
        for name in names:
            (NAMESPACES / name).unlink(missing_ok=True)
        shutil.rmtree(place)
    return {"bare_deploy_s": deploy_s}


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    rows = []
    for each in found["labs"]:
        up, down, alone = (about(each[key] * NS_PER_SECOND, "time") for key in ("up_s", "down_s", "bare_deploy_s"))
        ratio = f"{each['up_s'] / each['bare_deploy_s']:.2f}"
        rows.append([each["topology"], str(each["containers"]), up, down, alone, ratio])
    columns = ["lab", "containers", "up, links running", "down", "containerlab, bare containers", "up / bare"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return [(f"Labs of containers ({versions})", columns, rows)]
