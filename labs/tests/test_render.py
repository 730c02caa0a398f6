from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.render import svg, table
from ewan.labs.spec import from_template, load, parse
from ewan.labs.spec.fields import Topology

pytestmark = pytest.mark.slow

HOST = HostFacts((0, 1), ())
LIBRARY = Path(__file__).resolve().parents[1] / "library"
SVG = "{http://www.w3.org/2000/svg}"


def compiled(template: str, **overrides: str) -> Plan:
    return compile(from_template(template, overrides), HOST)


def test_a_picture_of_many_hosts_is_drawn_in_time_that_grows_with_their_number() -> None:
    def took_s(pairs: int) -> float:
        plan = compiled("dumbbell", pairs=str(pairs))
        begun = time.process_time()
        svg.picture(plan)
        return time.process_time() - begun

    few, many = min(took_s(60) for _ in range(3)), took_s(480)
    assert many < 8 * 3 * few + 0.5, f"{many:.2f} s for 480 pairs, {few:.2f} s for 60"


@pytest.mark.parametrize("kind", [kind for kind in Topology.words() if kind != "graph"])
def test_a_picture_shows_every_node_once_and_apart(kind: str) -> None:
    plan = compiled(kind)
    picture = svg.picture(plan)
    root = ElementTree.fromstring(picture)
    drawn = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter(f"{SVG}circle")]
    kinds = {node.kind for node in plan.nodes} - {"emulator"}
    drawn = drawn[: -len(kinds)]  # the others are the legend's
    visible = [node.name for node in plan.nodes if node.kind != "emulator"]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert len(drawn) == len(visible)
    assert set(visible) | {link.name for link in plan.links} <= set(words)
    for index, (x, y) in enumerate(drawn):
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        assert left < x < left + width and top < y < top + height
        assert all((x - a) ** 2 + (y - b) ** 2 > 20**2 for a, b in drawn[:index])
    assert picture == svg.picture(plan)


LEGIBLE = [
    compiled("star", arms="8"),
    compiled("ring", routers="12"),
    compiled("grid"),
    compiled("mesh"),
    compiled("parking-lot", loss="0.1%"),
    compiled("fishbone", queue="codel"),
    compile(load(LIBRARY / "switched.lab.yaml"), HOST),
    compile(load(LIBRARY / "satellite.lab.yaml"), HOST),
    compile(load(LIBRARY / "l4s.lab.yaml"), HOST),
]


@pytest.mark.parametrize("plan", LEGIBLE, ids=lambda plan: plan.lab)
def test_no_words_of_a_picture_lie_on_others_or_on_a_node(plan: Plan) -> None:
    root = ElementTree.fromstring(svg.picture(plan))
    grounds = [
        tuple(float(each.attrib[key]) for key in ("x", "y", "width", "height"))
        for each in root.iter(f"{SVG}rect")
        if each.attrib.get("class") == "back"
    ]
    named = [node for node in plan.nodes if node.kind != "emulator"]
    assert len(grounds) >= len(named) + len(plan.links)
    for index, (x, y, width, height) in enumerate(grounds):
        for a, b, wide, high in grounds[:index]:
            assert x + width <= a or a + wide <= x or y + height <= b or b + high <= y
        for circle in root.iter(f"{SVG}circle"):
            cx, cy, r = (float(circle.attrib[key]) for key in ("cx", "cy", "r"))
            near = max(x, min(cx, x + width)), max(y, min(cy, y + height))
            assert (near[0] - cx) ** 2 + (near[1] - cy) ** 2 >= r**2
    assert float(root.attrib["width"]) < 2000


def words_of(plan: Plan) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg.picture(plan)).iter(f"{SVG}text")]


def test_each_link_tells_rate_delay_buffer_queue_and_loss() -> None:
    words = words_of(compiled("parking-lot", loss="0.1%", queue="codel", rtt="90ms", rate="100M"))
    for shown in ("100Mbit/s 15ms", "1.125MB codel", "loss 0.1%"):
        assert words.count(shown) == 3, "at each hop"
    words = words_of(compile(load(LIBRARY / "satellite.lab.yaml"), HOST))
    for shown in ("core (r1 → r2)", "→ 50Mbit/s 280ms", "← 5Mbit/s 280ms", "← 350kB drop-tail", "bottleneck"):
        assert shown in words
    assert any("10Gbit/s" in word and word.startswith("plain link") for word in words), "the legend has the others"


def test_the_bottleneck_is_the_one_of_the_table_of_pairs() -> None:
    switched = compile(load(LIBRARY / "switched.lab.yaml"), HOST)
    assert svg.bottlenecks(switched) == {"sw-r1": 3, "sw-r2": 3}
    words = words_of(switched)
    assert words.count("bottleneck of all pairs") == 2 and "100Mbit/s 257.38kB" in words
    assert {row[3].rpartition(" ")[2] for row in table.pairs(switched)} <= set(svg.bottlenecks(switched))
    marked = svg.picture(switched).count('<line class="bottleneck"')
    assert marked == 3, "both of them, and the legend's"


def test_the_documents_picture_is_that_of_the_library() -> None:
    plan = compile(load(LIBRARY / "parking-lot.lab.yaml"), HOST)
    drawn = (LIBRARY.parents[1] / "docs/parking-lot.svg").read_text()
    assert svg.picture(plan) == drawn, "ewan lab compile labs/library/parking-lot.lab.yaml draws it anew"


@pytest.mark.parametrize("file", sorted(LIBRARY.glob("*.lab.yaml")), ids=lambda f: f.name)
def test_the_librarys_labs_are_drawn(file: Path) -> None:
    plan = compile(load(file), HOST)
    ElementTree.fromstring(svg.picture(plan))
    assert all(link.name in {row[0] for row in table.links(plan)} for link in plan.links)


def test_a_picture_of_many_hosts_is_drawn_without_words() -> None:
    picture = svg.picture(compiled("star", arms="500"))
    assert "arm1" not in picture
    assert picture.count("<circle") == 501 + 2, "and two in the legend"


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
    switched = compile(load(LIBRARY / "switched.lab.yaml"), HOST)
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
