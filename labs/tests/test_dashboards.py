"""The files of Prometheus and Grafana, and what the two are in a containerlab file."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ewan.labs.base.codec import replace
from ewan.labs.commands.metrics import metrics_command
from ewan.labs.compile import HostFacts, compile
from ewan.labs.context import Context
from ewan.labs.plan import Containers, Plan
from ewan.labs.render import dashboards, panels
from ewan.labs.spec import from_template

FAMILIES = Path(__file__).resolve().parents[2] / "emulator/node/src/metrics/text.rs"
FACTS = HostFacts(cpus=(0, 1), networks=())
# Of Grafana's schema: what a panel must have for Grafana to draw it.
PANEL_KEYS = {"id", "type", "title", "datasource", "gridPos", "targets", "fieldConfig", "options"}


def lab(template: str = "parking-lot", shown: bool = True, **settings: str) -> Plan:
    plan = compile(from_template(template, {"name": "lot", **settings}), FACTS)
    return replace(plan, containers=Containers(management=shown, dashboards=shown))


def queries() -> list[str]:
    board = json.loads(dashboards.dashboard_file())
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return shown + [variable["query"]["query"] for variable in board["templating"]["list"]]


def test_every_metric_that_is_asked_for_is_one_that_is_told() -> None:
    told = dict(re.findall(r'"(ewan_\w+)",\s*"(gauge|counter|histogram)"', FAMILIES.read_text()))
    assert len(told) >= 25
    for query in queries():
        for name in re.findall(r"ewan_\w+", query):
            if told.get(re.sub("_(bucket|sum|count)$", "", name)) == "histogram":
                continue
            assert name in told, query
            # A counter alone says nothing: it is asked for its growth.
            in_rate = re.search(rf"rate\({name}\{{[^}}]*\}}\[", query)
            assert bool(in_rate) == (told[name] == "counter") or query.startswith("label_values"), query


def test_all_that_the_dashboard_promises_is_there() -> None:
    titles = [panel.title for panel in panels.PANELS]
    assert len(titles) == len(set(titles))
    for wanted in (
        *("Rate out", "Rate in", "Queue, bytes", "Queue, packets", "Drops by cause", "Lateness", "Utilisation"),
    ):
        assert wanted in titles
    assert [variable["name"] for variable in json.loads(dashboards.dashboard_file())["templating"]["list"]] == [
        "lab",
        "link",
        "direction",
    ]


def test_the_dashboard_is_what_grafana_reads() -> None:
    board = json.loads(dashboards.dashboard_file())
    assert board["schemaVersion"] == panels.SCHEMA and board["uid"] and "id" not in board
    assert all(panel.keys() >= PANEL_KEYS for panel in board["panels"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    known = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
    for panel in board["panels"]:
        assert panel["type"] in ("timeseries", "stat")
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters)) and letters[0] == "A"
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == panels.SOURCE
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= known, target["expr"]
            assert target["expr"].count("(") == target["expr"].count(")")
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= {
                *("link", "direction", "cause", "interface", "spinner"),
            }


def test_panels_fill_rows_and_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(dashboards.dashboard_file())["panels"]]
    cells = [{(x, y) for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])} for p in places]
    assert all(x < 24 for covered in cells for x, _ in covered)
    assert not any(one & other for one, other in combinations(cells, 2))


def test_a_lab_without_dashboards_has_neither_nodes_nor_files() -> None:
    plan = lab(shown=False)
    assert dashboards.nodes(plan, version="1") == {} == dashboards.files(plan)


def test_prometheus_asks_every_emulator_by_its_containers_name() -> None:
    plan = lab(hops="3")
    config = yaml.safe_load(dashboards.files(plan)["dashboards/prometheus.yml"])
    (job,) = config["scrape_configs"]
    (targets,) = job["static_configs"]
    assert targets["targets"] == [f"ewan-lot-{link.node}:9324" for link in plan.links]
    assert len(targets["targets"]) == 3


def test_grafana_finds_its_data_source_and_its_dashboard() -> None:
    files = dashboards.files(lab())
    (source,) = yaml.safe_load(files["dashboards/grafana/datasources/ewan.yml"])["datasources"]
    assert source["url"] == "http://ewan-lot-prometheus:9090"
    assert source["uid"] == panels.SOURCE["uid"]
    (provider,) = yaml.safe_load(files["dashboards/grafana/dashboards/ewan.yml"])["providers"]
    assert provider["options"]["path"] == "/lab/dashboards/shown"
    assert [path for path in files if path.startswith("dashboards/shown/")] == ["dashboards/shown/ewan.json"]
    grafana = dashboards.nodes(lab(), version="1")["grafana"]
    for variable, path in (
        ("GF_PATHS_PROVISIONING", "dashboards/grafana"),
        ("GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH", "dashboards/shown/ewan.json"),
    ):
        assert grafana["env"][variable] == f"/lab/{path}"
        assert any(name.startswith(path) for name in files)


def test_ports_are_published_to_this_machine_alone() -> None:
    plan = lab()
    for ports in (dashboards.PORTS, dashboards.Ports(9091, 3001)):
        nodes = dashboards.nodes(plan, version="1.2", ports=ports)
        published = {name: node["ports"] for name, node in nodes.items()}
        assert published == {
            "prometheus": [f"127.0.0.1:{ports.prometheus}:9090"],
            "grafana": [f"127.0.0.1:{ports.grafana}:3000"],
        }
    assert nodes["prometheus"]["image"] == "ewan/prometheus:1.2"
    assert re.fullmatch(r"grafana/grafana:\d+\.\d+\.\d+", nodes["grafana"]["image"])
    for node in nodes.values():
        assert node["cpu-set"] == ",".join(map(str, plan.host_cpus)), "a spinner has its CPU for itself"


def test_nodes_of_these_very_names_keep_them() -> None:
    plan = lab()
    renamed = replace(plan, nodes=(replace(plan.nodes[0], name="grafana"), *plan.nodes[1:]))
    assert set(dashboards.nodes(renamed, version="1")) == {"prometheus", "grafana-x"}


def test_the_environment_says_other_ports() -> None:
    assert dashboards.ports_of({}) == (9090, 3000)
    assert dashboards.ports_of({"EWAN_PROMETHEUS_PORT": "9091", "EWAN_GRAFANA_PORT": ""}) == (9091, 3000)


@pytest.mark.parametrize("port", ["0", "65536", "ninety", "-1", "٣", "3000", "1e3"])
def test_what_is_no_port_is_refused_in_one_line(port: str) -> None:
    with pytest.raises(ValueError, match=rf"^EWAN_\w+_PORT={port}: write|^EWAN_GRAFANA_PORT=3000: ") as refused:
        dashboards.ports_of({"EWAN_PROMETHEUS_PORT": port})
    assert "\n" not in str(refused.value)


def test_files_for_a_page_without_containers(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        metrics_command, ["--files", str(tmp_path / "shown"), "--listen", "127.0.0.1:9400"], obj=Context.of({})
    )
    assert result.exit_code == 0, result.output
    config: dict[str, Any] = yaml.safe_load((tmp_path / "shown/prometheus.yml").read_text())
    assert config["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:9400"]
    provider = yaml.safe_load((tmp_path / "shown/grafana/dashboards/ewan.yml").read_text())["providers"][0]
    assert list(Path(provider["options"]["path"]).iterdir()) == [tmp_path / "shown/shown/ewan.json"]
    assert str(tmp_path / "shown/prometheus.yml") in result.output


def test_a_place_that_takes_no_files_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(metrics_command, ["--files", str(tmp_path / "file/below")], obj=Context.of({}))
    assert result.exit_code == 2
    assert "Not a directory: name another directory with --files" in result.output
