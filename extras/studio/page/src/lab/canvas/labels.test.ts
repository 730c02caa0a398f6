// Words of the drawing do not stand over each other, nor over nodes.

import assert from "node:assert/strict";
import test from "node:test";
import { type LinkWords, type NodeWords, type Place, placed, RADIUS } from "./labels";

const node = (name: string, x: number, y: number, rank = 1): NodeWords => ({
  name,
  at: { x, y },
  rank,
  must: false,
});
const link = (name: string, from: NodeWords, to: NodeWords, more: Partial<LinkWords> = {}): LinkWords => ({
  name,
  from: from.at,
  to: to.at,
  sizes: [{ form: "line", width: 150, height: 16 }],
  rank: 0,
  must: false,
  ...more,
});

const STAR = Array.from({ length: 12 }, (_, at) =>
  node(`host${at}`, 300 * Math.cos(at / 2), 300 * Math.sin(at / 2)),
);
const HUB = node("hub", 0, 0, 0);

function middle(each: LinkWords, place: Place, zoom: number): [number, number] {
  return [
    (each.from.x + (each.to.x - each.from.x) * place.along) * zoom + place.dx,
    (each.from.y + (each.to.y - each.from.y) * place.along) * zoom + place.dy,
  ];
}

test("no words over others, and none over a node", () => {
  const links = STAR.map((each) => link(`arm-${each.name}`, each, HUB));
  for (const zoom of [0.3, 0.7, 1, 2]) {
    const found = placed([...STAR, HUB], links, zoom);
    const boxes = links.flatMap((each) => {
      const place = found.links.get(each.name);
      return place ? [{ at: middle(each, place, zoom), of: each }] : [];
    });
    assert.ok(zoom < 1 || boxes.length > 3, `${boxes.length} at ${zoom}`);
    for (const { at, of } of boxes) {
      for (const other of boxes)
        if (other.of !== of)
          assert.ok(Math.abs(at[0] - other.at[0]) >= 150 || Math.abs(at[1] - other.at[1]) >= 16, of.name);
      for (const each of [...STAR, HUB])
        assert.ok(
          Math.abs(at[0] - each.at.x * zoom) >= 75 + RADIUS * zoom ||
            Math.abs(at[1] - each.at.y * zoom) >= 8 + RADIUS * zoom,
        );
    }
  }
});

test("what must be shown is, in whatever crowd", () => {
  const links = STAR.map((each, at) => link(`arm-${each.name}`, each, HUB, { must: at === 5 }));
  const found = placed([...STAR, { ...HUB, must: true }], links, 0.05);
  assert.deepEqual([...found.links.keys()], ["arm-host5"]);
  assert.equal(found.nodes.get("hub"), true);
  assert.equal([...found.nodes.values()].filter(Boolean).length, 1);
});
