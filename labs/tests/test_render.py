from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from labs.compile import HostFacts, compile
from labs.plan import Plan
from labs.render import svg, table
from labs.spec import from_template, load, parse
from labs.spec.fields import Topology

HOST = HostFacts((0, 1), ())
SVG = "{http://www.w3.org/2000/svg}"


def compiled(template: str, **overrides: str) -> Plan:
    return compile(from_template(template, overrides), HOST)


@pytest.mark.parametrize("kind", [kind for kind in Topology.words() if kind != "graph"])
def test_a_picture_shows_every_node_once_and_apart(kind: str) -> None:
    plan = compiled(kind)
    picture = svg.picture(plan)
    root = ElementTree.fromstring(picture)
    drawn = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter(f"{SVG}circle")]
    visible = [node.name for node in plan.nodes if node.kind != "emulator"]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert len(drawn) == len(visible)
    assert set(visible) | {link.name for link in plan.links} <= set(words)
    for index, (x, y) in enumerate(drawn):
        assert 0 < x < float(root.attrib["width"]) and 0 < y < float(root.attrib["height"])
        assert all((x - a) ** 2 + (y - b) ** 2 > 20**2 for a, b in drawn[:index])
    assert picture == svg.picture(plan)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[1] / "library").glob("*.lab.yaml")), ids=lambda f: f.name
)
def test_the_librarys_labs_are_drawn(file: Path) -> None:
    plan = compile(load(file), HOST)
    ElementTree.fromstring(svg.picture(plan))
    assert all(link.name in {row[0] for row in table.links(plan)} for link in plan.links)


def test_a_picture_of_many_hosts_is_drawn_without_words() -> None:
    picture = svg.picture(compiled("star", arms="500"))
    assert "arm1" not in picture
    assert picture.count("<circle") == 501


def test_the_table_of_a_dumbbell() -> None:
    nodes, links, pairs = table.sheets(compiled("dumbbell", rtt="100ms", loss="0.1%"))
    assert [row[:2] for row in nodes[2]] == [
        ["left1", "host"],
        ["right1", "host"],
        ["r1", "router"],
        ["r2", "router"],
    ]
    assert links[2][0] == ["core", "r1 ↔ r2", "1Gbit/s", "50ms", "12.5MB", "drop-tail", "0.1%", "wire"]
    assert links[2][1] == ["access-left1", "left1 ↔ r1", "10Gbit/s", "0ms", "1.538MB", "drop-tail", "", "wire"]
    assert pairs[2] == [["left1", "right1", "100ms", "1Gbit/s at core", "core"]]
    for _, columns, rows in (nodes, links, pairs):
        assert all(len(row) == len(columns) for row in rows)


def test_the_table_names_what_is_slowest_on_the_way() -> None:
    switched = compile(load(Path(__file__).parents[1] / "library/switched.lab.yaml"), HOST)
    assert {tuple(row[3:]) for row in table.pairs(switched)} == {("100Mbit/s at sw-r1", "core")}
    slow = compiled("dumbbell", access="100M")
    assert table.pairs(slow)[0][3] == "100Mbit/s at access-left1"
    text = "topology: dumbbell\nrtt: 10ms\naccess: {rate: 20Mbit/s, backward: {rate: 2Mbit/s}}\n"
    asymmetric = compile(parse(text, Path("x.lab.yaml")), HOST)
    assert [row[3] for row in table.pairs(asymmetric)] == ["2Mbit/s at access-right1"]
    text = "topology: dumbbell\nrtt: 10ms\nwan: {rate: 20Mbit/s, backward: {rate: 2Mbit/s}}\n"
    asymmetric = compile(parse(text, Path("x.lab.yaml")), HOST)
    assert [row[3] for row in table.pairs(asymmetric)] == ["20Mbit/s at core, back 2Mbit/s at core"]


def test_the_table_shows_directions_that_differ() -> None:
    plan = compile(from_template("dumbbell", {"rtt": "3ns", "jitter": "1ns", "queue": "codel"}), HOST)
    rows = table.links(plan)
    assert [row[1:4] for row in rows[:2]] == [
        ["r1 → r2", "1Gbit/s", "2ns ± 1ns normal"],
        ["r2 → r1", "1Gbit/s", "1ns ± 1ns normal"],
    ]
    assert rows[0][5] == "codel"
