// Where the words of the drawing stand: of constant size on the screen, none over another or over a node. What matters more
// comes first; what finds no room is not shown, but what is selected always is. Pure.

export interface Point {
  x: number;
  y: number;
}
export interface NodeWords {
  name: string;
  at: Point; // the middle of its shape, on the drawing
  rank: number; // lower comes first
  must: boolean;
}
export interface LinkWords {
  name: string;
  from: Point;
  to: Point;
  sizes: { form: Form; width: number; height: number }[]; // on the screen; the first that fits is taken
  rank: number;
  must: boolean;
}
export type Form = "line" | "stacked" | "name";
/** Where a link's words stand: how far along it, and from there in pixels of the screen. */
export interface Place {
  form: Form;
  along: number;
  dx: number;
  dy: number;
}
export interface Placed {
  nodes: Map<string, boolean>;
  links: Map<string, Place>;
}
interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export const RADIUS = 14; // of a node's shape, on the drawing
export const LETTER = 6.6; // the width of a letter, on the screen
export const LINE = 16; // the height of a line
export const MOST_SHOWN = 400;
const CELL = 64;
const MARGIN = 2;
const BEYOND = 60; // words may reach so far out of the nodes
const DIAGONAL = 0.25;
const ALONG = [0.5, 0.38, 0.62, 0.28, 0.72];

class Taken {
  private cells = new Map<string, Box[]>();

  take(box: Box): void {
    for (const cell of cellsOf(box)) {
      const there = this.cells.get(cell);
      if (there) there.push(box);
      else this.cells.set(cell, [box]);
    }
  }

  free(box: Box): boolean {
    for (const cell of cellsOf(box))
      for (const other of this.cells.get(cell) ?? [])
        if (
          box.left < other.right &&
          other.left < box.right &&
          box.top < other.bottom &&
          other.top < box.bottom
        )
          return false;
    return true;
  }
}

function* cellsOf(box: Box): Iterable<string> {
  for (let x = Math.floor(box.left / CELL); x <= Math.floor(box.right / CELL); x++)
    for (let y = Math.floor(box.top / CELL); y <= Math.floor(box.bottom / CELL); y++) yield `${x} ${y}`;
}

const around = (x: number, y: number, width: number, height: number): Box => ({
  left: x - width / 2 - MARGIN,
  top: y - height / 2 - MARGIN,
  right: x + width / 2 + MARGIN,
  bottom: y + height / 2 + MARGIN,
});

/** `zoom`: pixels of the screen for one of the drawing. */
export function placed(nodes: NodeWords[], links: LinkWords[], zoom: number): Placed {
  const taken = new Taken();
  const found: Placed = { nodes: new Map(), links: new Map() };
  for (const { at } of nodes)
    taken.take(around(at.x * zoom, at.y * zoom, 2 * RADIUS * zoom, 2 * RADIUS * zoom));
  const frame = frameOf(nodes, zoom);
  const first = <T extends { must: boolean; rank: number }>(a: T, b: T) =>
    Number(b.must) - Number(a.must) || a.rank - b.rank;
  const named = (each: NodeWords) => {
    const y = (each.at.y + RADIUS) * zoom + LINE / 2 + 2 * MARGIN + 1;
    const box = around(each.at.x * zoom, y, each.name.length * LETTER, LINE);
    const shown = each.must || taken.free(box);
    if (shown) taken.take(box);
    found.nodes.set(each.name, shown);
  };
  const [names, told] = [[...nodes].sort(first), [...links].sort(first)];
  for (const each of told) if (each.must) linked(each, zoom, taken, found, frame);
  for (const each of names) named(each);
  for (const each of told) if (!each.must) linked(each, zoom, taken, found, frame);
  return found;
}

function linked(each: LinkWords, zoom: number, taken: Taken, found: Placed, frame: Box): void {
  if (found.links.size >= MOST_SHOWN && !each.must) return;
  for (const { form, width, height } of each.sizes)
    for (const place of sides(each, zoom, form, width, height)) {
      const x = (each.from.x + (each.to.x - each.from.x) * place.along) * zoom + place.dx;
      const y = (each.from.y + (each.to.y - each.from.y) * place.along) * zoom + place.dy;
      const box = around(x, y, width, height);
      if (!within(box, frame) || !taken.free(box)) continue;
      taken.take(box);
      found.links.set(each.name, place);
      return;
    }
  const last = each.sizes.at(-1);
  if (each.must && last) found.links.set(each.name, { form: last.form, along: 0.5, dx: 0, dy: 0 });
}

/** Above and below a flat line, right and left of a steep one, on one that is neither. */
function sides(each: LinkWords, zoom: number, form: Form, width: number, height: number): Place[] {
  const [dx, dy] = [(each.to.x - each.from.x) * zoom, (each.to.y - each.from.y) * zoom];
  const on = ALONG.map((along) => ({ form, along, dx: 0, dy: 0 }));
  if (Math.hypot(dx, dy) < width / 2) return [];
  const steep = Math.abs(dy) > Math.abs(dx);
  const slope = steep ? Math.abs(dx / dy) : Math.abs(dy / dx);
  if (slope > DIAGONAL) return on;
  const aside = steep ? width / 2 + 6 + (slope * height) / 2 : 0;
  const above = steep ? 0 : height / 2 + 5 + (slope * width) / 2;
  const beside = ALONG.flatMap((along) => [
    { form, along, dx: aside, dy: -above },
    { form, along, dx: -aside, dy: above },
  ]);
  return [...beside, ...on];
}

function within(box: Box, frame: Box): boolean {
  return (
    box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom
  );
}

/** What is seen when all is: words beyond it would be cut off. */
function frameOf(nodes: NodeWords[], zoom: number): Box {
  const [xs, ys] = [nodes.map((each) => each.at.x * zoom), nodes.map((each) => each.at.y * zoom)];
  const least = (all: number[]) => all.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY) - BEYOND;
  const most = (all: number[]) => all.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY) + BEYOND;
  return { left: least(xs), top: least(ys), right: most(xs), bottom: most(ys) };
}
