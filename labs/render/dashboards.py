"""Prometheus and Grafana beside a lab of containers: their nodes for the containerlab file, and their files.

In: a plan, the images' version, the ports to publish. Out: plain dictionaries and texts; nothing is written here. Every
emulator serves its link's metrics at METRICS_PORT of the management network; Prometheus asks them there by their
containers' names, and Grafana shows what it gathered with the dashboard of `labs/render/panels.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

import yaml

from ewan.labs.base.codec import JsonValue
from ewan.labs.plan import Plan
from ewan.labs.render import panels

METRICS_PORT = 9324
SCRAPE_S = 2
KEPT_DAYS = 15
# Debian, of which our images are made, has no Grafana: a public image, by its exact version.
GRAFANA_IMAGE = "grafana/grafana:11.2.0"
# In the lab's directory, which is mounted at /lab in every container.
DIRECTORY = "dashboards"
THERE = f"/lab/{DIRECTORY}"
# Below THERE.
PROMETHEUS_FILE = "prometheus.yml"
PROVISIONING = "grafana"
SHOWN = "shown"
DASHBOARD_FILE = f"{SHOWN}/ewan.json"


ContainerNode = TypedDict(
    "ContainerNode",
    {
        "kind": str,
        "image": str,
        "image-pull-policy": str,
        "entrypoint": str,
        "cmd": str,
        "user": str,
        "cpu-set": str,
        "labels": dict[str, str],
        "binds": list[str],
        "env": dict[str, str],
        "ports": list[str],
        "exec": list[str],
    },
    total=False,
)
"""A node in containerlab's words, those of them that are written here."""


class Ports(NamedTuple):
    """The ports of 127.0.0.1 at which Prometheus and Grafana are published."""

    prometheus: int = 9090
    grafana: int = 3000


PORTS = Ports()
# Environment variables that set other ports, as "9091".
PORT_VARIABLES = {name: f"EWAN_{name.upper()}_PORT" for name in Ports._fields}


def ports_of(environment: Mapping[str, str]) -> Ports:
    """The ports that an environment asks for; ValueError, in one line, for what is no port."""
    found = {}
    for name, variable in PORT_VARIABLES.items():
        text = environment.get(variable, "")
        if text:
            if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**16):
                raise ValueError(f"{variable}={text}: write a port from 1 to 65535")
            found[name] = int(text)
    wanted = PORTS._replace(**found)
    if wanted.prometheus == wanted.grafana:
        raise ValueError(f"{PORT_VARIABLES['grafana']}={wanted.grafana}: Prometheus has that port, write another one")
    return wanted


def nodes(plan: Plan, *, version: str, ports: Ports = PORTS) -> dict[str, ContainerNode]:
    """The two nodes in containerlab's words, by name; {} for a lab without dashboards. `version`: tag of our images."""
    if not plan.containers.dashboards:
        return {}
    prometheus, grafana = names(plan)
    cpus = ",".join(map(str, plan.host_cpus))
    command = (
        f"--config.file={THERE}/{PROMETHEUS_FILE}",
        "--storage.tsdb.path=/var/lib/prometheus",
        f"--storage.tsdb.retention.time={KEPT_DAYS}d",
    )
    return {
        prometheus: {
            "image": f"ewan/prometheus:{version}",
            "entrypoint": "/usr/bin/prometheus",
            "cmd": " ".join(command),
            "user": "root",
            "cpu-set": cpus,
            "ports": [f"127.0.0.1:{ports.prometheus}:9090"],
        },
        grafana: {
            "image": GRAFANA_IMAGE,
            "image-pull-policy": "IfNotPresent",
            # Its own user may not look into a directory of root's.
            "user": "root",
            "cpu-set": cpus,
            "env": {
                "GF_PATHS_PROVISIONING": f"{THERE}/{PROVISIONING}",
                # Only this machine reaches the port, so no login is needed.
                "GF_AUTH_ANONYMOUS_ENABLED": "true",
                "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
                "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": f"{THERE}/{DASHBOARD_FILE}",
                "GF_ANALYTICS_REPORTING_ENABLED": "false",
                "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
            },
            "ports": [f"127.0.0.1:{ports.grafana}:3000"],
        },
    }


def names(plan: Plan) -> tuple[str, str]:
    """The names of the two nodes; a lab may have nodes of these very names."""
    taken = {node.name for node in plan.nodes}

    def free(name: str) -> str:
        while name in taken:
            name += "-x"
        return name

    return free("prometheus"), free("grafana")


def container(plan: Plan, node: str) -> str:
    """The name by which the management network knows a node."""
    return f"ewan-{plan.lab}-{node}"


def files(plan: Plan) -> dict[str, str]:
    """Text by path below the lab's directory; {} for a lab without dashboards."""
    if not plan.containers.dashboards:
        return {}
    targets = [f"{container(plan, link.node)}:{METRICS_PORT}" for link in plan.links]
    source = f"http://{container(plan, names(plan)[0])}:9090"
    return {f"{DIRECTORY}/{path}": text for path, text in all_files(targets, source, THERE).items()}


def all_files(targets: Sequence[str], source: str, root: str) -> dict[str, str]:
    """Prometheus' and Grafana's files by path below `root`, an absolute path as Grafana sees it.

    targets: addresses of `ewan-node metrics`; source: Prometheus' address.
    """
    provisioned = provisioning(source, f"{root}/{SHOWN}")
    return {
        PROMETHEUS_FILE: prometheus_file(targets),
        DASHBOARD_FILE: dashboard_file(),
        **{f"{PROVISIONING}/{path}": text for path, text in provisioned.items()},
    }


def prometheus_file(targets: Sequence[str]) -> str:
    """prometheus.yml for pages of `ewan-node metrics` at these addresses."""
    return _yaml(
        {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "scrape_timeout": f"{SCRAPE_S}s"},
            "scrape_configs": [{"job_name": "ewan", "static_configs": [{"targets": list(targets)}]}],
        }
    )


def provisioning(prometheus: str, dashboards: str) -> dict[str, str]:
    """Grafana's provisioning files: the data source at this address, and dashboards from that directory."""
    source: dict[str, JsonValue] = {
        "name": "Prometheus",
        "uid": panels.SOURCE["uid"],
        "type": "prometheus",
        "access": "proxy",
        "url": prometheus,
        "isDefault": True,
        "jsonData": {"timeInterval": f"{SCRAPE_S}s"},
    }
    provider: dict[str, JsonValue] = {
        "name": "ewan",
        "type": "file",
        "disableDeletion": True,
        "allowUiUpdates": False,
        "options": {"path": dashboards},
    }
    return {
        "datasources/ewan.yml": _yaml({"apiVersion": 1, "datasources": [source]}),
        "dashboards/ewan.yml": _yaml({"apiVersion": 1, "providers": [provider]}),
    }


def dashboard_file() -> str:
    """The dashboard of `panels.dashboard` as the JSON file that Grafana reads."""
    return json.dumps(panels.dashboard(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _yaml(content: JsonValue) -> str:
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=False, allow_unicode=True)
