"""A person and the drawing: nodes come and go by pointer and by keys, ELK places them, sides fold, paths are drawn."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.extras.studio.contrast import below_aa
from tests.extras.studio.server import HEIGHT, WIDTH, Server
from tests.extras.studio.steps import put, save_as, text, until, write

pytestmark = pytest.mark.untimed

FAT_TREE = """topology:
  graph:
    hosts: [h1, h2, h3, h4]
    routers: [edge1, edge2, agg1, agg2, top1, top2]
    links:
      - {between: [h1, edge1]}
      - {between: [h2, edge1]}
      - {between: [h3, edge2]}
      - {between: [h4, edge2]}
      - {between: [edge1, agg1], delay: 5ms}
      - {between: [edge2, agg2], delay: 5ms}
      - {between: [agg1, top1], delay: 5ms}
      - {between: [agg1, top2], delay: 5ms}
      - {between: [agg2, top1], delay: 5ms}
      - {between: [agg2, top2], delay: 5ms}
"""

OVERLAPS = """() => {
  const words = document.querySelectorAll('.node .shape, .link-words, .node .name');
  const boxes = [...words].map((each) => each.getBoundingClientRect());
  const shared = (a, b) => [
    Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top),
  ];
  return boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) => shared(a, b)[0] > 2 && shared(a, b)[1] > 3)).length;
}"""
"""How many shapes and words stand over another."""


def place(page: Page, node: str) -> tuple[float, float]:
    """Of a node, on the screen."""
    box = page.get_by_test_id(f"node-{node}").bounding_box()
    assert box is not None
    return box["x"], box["y"]


def test_a_network_is_drawn_without_a_mouse(page: Page, server: Server) -> None:
    """Begun, nodes added, joined, renamed and moved, a link set, another removed, the last change undone, saved."""

    def press(name: str, keys: str = "Enter") -> None:
        page.get_by_test_id(name).focus()
        page.keyboard.press(keys)

    page.get_by_test_id("template").focus()
    page.keyboard.type("graph")
    expect(page.get_by_test_id("node-r2")).to_be_visible()
    page.locator('[data-id="r2"]').focus()
    page.keyboard.press("Enter")
    press("add-router")
    expect(page.get_by_test_id("node-r3")).to_be_visible()
    page.locator('[data-id="r3"]').focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("link-to").focus()
    page.keyboard.type("r1")
    press("join")
    until(lambda: "- {between: [r2, r3], delay: 10ms}" in text(page))
    until(lambda: "- {between: [r3, r1], delay: 10ms}" in text(page))
    put(page, "name", "paris")
    expect(page.get_by_test_id("node-paris")).to_be_visible()
    page.locator('[data-id="paris"]').focus()
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    until(lambda: re.search(r"paris: \[-?\d+, -?\d+\]", text(page)) is not None)
    page.get_by_test_id("routing").focus()
    page.keyboard.press("o")  # of ospf; a busy browser takes letters that come late as new words
    until(lambda: "routing: ospf" in text(page))

    page.locator('[aria-label^="link core"]').focus()
    page.keyboard.press("Enter")
    put(page, "delay", "30ms")
    until(lambda: "name: core, delay: 30ms" in text(page))
    page.locator('[aria-label^="link paris-r1"]').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Delete")
    expect(page.locator('[aria-label^="link paris-r1"]')).to_have_count(0)
    assert "[paris, r1]" not in text(page)
    page.locator('[data-id="paris"]').focus()
    page.keyboard.press("Control+z")
    expect(page.locator('[aria-label^="link paris-r1"]')).to_have_count(1)
    save_as(page, "drawn.lab.yaml")
    assert "paris" in (server.place / "drawn.lab.yaml").read_text()


def test_a_network_is_drawn_while_it_is_no_lab_yet_and_nobody_moves(page: Page) -> None:
    """A router without a link is there, greys nothing out, and stays where it is put. Nor does a host move others that
    is written into the text."""
    page.get_by_test_id("template").select_option("graph")
    expect(page.get_by_test_id("node-r2")).to_be_visible()
    time.sleep(0.5)  # all is shown

    def stands(name: str) -> str:
        """Where in the drawing, however much of it is seen."""
        return str(page.locator(f'[data-id="{name}"]').evaluate("node => node.style.transform"))

    others = ("a", "b", "r1", "r2")
    before, seen = [stands(name) for name in others], [place(page, name) for name in others]
    page.get_by_test_id("add-router").click()
    expect(page.get_by_test_id("node-r3")).to_be_visible()
    expect(page.get_by_test_id("refusal")).to_contain_text("no links lead from r1 to r3")
    expect(page.locator("main.stale")).to_have_count(0)
    assert [place(page, name) for name in others] == seen
    x, y = place(page, "r3")
    page.mouse.move(x + 12, y + 12)
    page.mouse.down()
    page.mouse.move(x + 12, y + 102, steps=5)
    page.mouse.up()
    until(lambda: place(page, "r3")[1] > y + 40 and "r3: [190, 120]" not in text(page))
    page.get_by_test_id("link-to").select_option("r2")
    page.get_by_test_id("join").click()
    expect(page.get_by_test_id("refusal")).to_have_text("")
    expect(page.locator('[aria-label^="link r3-r2"]')).to_have_count(1)
    there = stands("r3")
    write(page, text(page).replace("hosts: [a, b]", "hosts: [a, b, c]").replace("links:", "links:\n      - [c, r3]"))
    expect(page.get_by_test_id("node-c")).to_be_visible()
    write(page, text(page).replace("- [c, r3]", "- {between: [c, r3]}"))
    expect(page.locator('[aria-label^="link c-r3"]')).to_have_count(1)
    expect(page.get_by_test_id("refusal")).to_have_text("")
    assert [stands(name) for name in others] == before and stands("r3") == there


def test_nodes_are_placed_moved_and_forgotten_together(page: Page) -> None:
    """ELK puts a tree's hosts below its routers, in one change; several nodes are moved as one; a node goes with its
    links."""
    write(page, FAT_TREE)
    expect(page.get_by_test_id("node-top2")).to_be_visible()
    page.get_by_test_id("lay-out").click()
    until(lambda: text(page).count(": [") > 16)
    until(lambda: max(place(page, f"top{n}")[1] for n in (1, 2)) < min(place(page, f"agg{n}")[1] for n in (1, 2)))
    until(lambda: max(place(page, f"edge{n}")[1] for n in (1, 2)) < min(place(page, f"h{n}")[1] for n in range(1, 5)))
    time.sleep(0.5)  # all is shown
    page.get_by_test_id("node-h1").click()
    page.get_by_test_id("node-h2").click(modifiers=["Control"])
    before = [place(page, name) for name in ("h1", "h2", "h3")]
    page.mouse.move(before[1][0] + 10, before[1][1] + 10)
    page.mouse.down()
    page.mouse.move(before[1][0] + 40, before[1][1] + 60, steps=5)
    page.mouse.up()
    until(lambda: place(page, "h1")[1] > before[0][1] + 30 and place(page, "h2")[1] > before[1][1] + 30)
    assert place(page, "h3") == before[2]
    page.keyboard.press("Delete")
    expect(page.get_by_test_id("node-h1")).to_have_count(0)
    expect(page.get_by_test_id("node-h2")).to_have_count(0)
    assert "h1" not in text(page) and "between: [h3, edge2]" in text(page)
    page.get_by_test_id("forget-places").click()
    until(lambda: "layout" not in text(page))
    page.locator('[data-id="top1"]').focus()
    page.keyboard.press("Control+z")
    until(lambda: "layout" in text(page))


def test_sides_are_folded_and_paths_are_drawn(page: Page) -> None:
    write(page, "topology: {dumbbell: {pairs: 6}}\n")
    expect(page.get_by_test_id("side-left")).to_contain_text("left, 6 hosts")
    page.get_by_test_id("path-source").select_option("left2")
    page.get_by_test_id("path-sink").select_option("right5")
    expect(page.get_by_test_id("path-there")).to_contain_text(
        "left2 → access-left2 → r1 → core → r2 → access-right5 → right5"
    )
    expect(page.get_by_test_id("on-path-core")).to_have_class(re.compile("both"))
    page.get_by_label("Fold left").click()
    expect(page.get_by_test_id("folded-left")).to_contain_text("6")
    expect(page.get_by_test_id("node-left3")).to_have_count(0)
    page.get_by_label("Unfold left").click()
    expect(page.get_by_test_id("node-left3")).to_be_visible()


def test_what_was_seen_whole_is_seen_whole_in_a_smaller_room(page: Page) -> None:
    """As when a terminal opens below the drawing."""
    write(page, "topology: {dumbbell: {pairs: 4}}\n")

    def lowest() -> float:
        boxes = [each.bounding_box() for each in page.locator(".node").all()]
        return max(box["y"] + box["height"] for box in boxes if box)

    until(lambda: page.locator(".node").count() == 10 and HEIGHT / 2 < lowest() < HEIGHT)
    time.sleep(0.5)  # it is shown whole
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT // 2})
    until(lambda: lowest() < HEIGHT / 2)


def test_what_is_looked_at_is_in_the_address(page: Page) -> None:
    """Another tab shows the same link and path; names that are not there are passed over."""
    write(page, "topology: {dumbbell: {pairs: 3}}\n")
    save_as(page, "three.lab.yaml")
    page.get_by_role("button", name="core", exact=True).first.click()
    page.get_by_test_id("path-source").select_option("left2")
    page.get_by_test_id("path-sink").select_option("right1")
    there = "left2 → access-left2 → r1 → core → r2 → access-right1 → right1"
    expect(page).to_have_url(re.compile(r"#/lab/three\.lab\.yaml\?link=core&from=left2&to=right1$"))
    page.reload()
    expect(page.get_by_test_id("path-there")).to_contain_text(there)
    with page.context.new_page() as other:
        other.goto(page.url)
        expect(other.get_by_test_id("path-there")).to_contain_text(there)
        expect(other.get_by_label("rate", exact=True)).to_be_visible()
        other.goto(page.url.split("?")[0] + "?link=gone&from=nobody&to=right1")
        expect(other.get_by_test_id("path-there")).to_have_count(0)
        expect(other.get_by_label("rate", exact=True)).to_have_count(0)
        expect(other.get_by_test_id("told")).to_have_text("")


def test_words_stand_neither_over_nodes_nor_over_each_other(page: Page) -> None:
    """In every template as it is first shown."""
    for template in page.get_by_test_id("template").locator("option").all_inner_texts():
        write(page, f"topology: {template}\n" if template != "graph" else FAT_TREE)
        expect(page.get_by_test_id("refusal")).to_have_text("")
        time.sleep(0.8)
        assert page.locator(".node .name").count() >= 3
        assert page.evaluate(OVERLAPS) == 0, template


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_the_contrast_that_people_need(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    write(page, "# why\ntopology: {dumbbell: {pairs: 6}}\nwan: {rate: 1Gbps/s}\n")
    expect(page.get_by_test_id("refusal")).to_contain_text("line 3")
    assert below_aa(page) == []
    write(page, "# why\ntopology: {dumbbell: {pairs: 6}}\n")
    expect(page.get_by_test_id("side-left")).to_be_visible()
    page.locator('[aria-label^="link core"]').focus()
    page.keyboard.press("Enter")
    assert below_aa(page) == []
    for other in ("scenario", "experiments"):
        page.get_by_test_id(f"page-{other}").click()
        expect(page.locator(f"a[data-testid=page-{other}]")).to_have_attribute("aria-current", "page")
        assert below_aa(page) == []
