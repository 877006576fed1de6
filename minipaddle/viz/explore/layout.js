// The tree of boxes (phases, layers, records) of a stage, laid out box by box.

const HEAD = 32, PAD = 12, GAP = 16, LEAST = 11 / 12;       // text of 12 px stays above 11
const PHASES = [...new Set(D.paths.map(path => path[0]))];
const pen = document.createElement("canvas").getContext("2d"), arranged = new Map();
// [items, lines] reversed?
const ORDERS = [[0, 0], [1, 0], [1, 1], [1, 1, "network-simplex"]], orderOf = new Map();
pen.font = "600 12px system-ui, sans-serif";

function measureText(text) { return Math.ceil(pen.measureText(text).width); }

function buildTree(stage, before) {
  const root = makeBox(null, "", ""), leaves = new Map(), home = new Map();
  const gone = new Set(stage.gone), fresh = new Set(stage.new), pairs = [];
  const add = ([t, inputs, chips]) => {
    if (stage.byKernel) home.set(t, T[t].kernels[0] ?? home.get(inputs[0]) ?? -1);
    const kernel = home.get(t), path = stage.byKernel ? placeKernel(kernel, t) : T[t].path;
    let up = root;
    const enter = (key, name) => {
      if (!up.inner.has(key)) up.inner.set(key, makeBox(up, key, name));
      up = up.inner.get(key);
    };
    path.forEach((name, k) => enter(`b${path.slice(0, k + 1).join("/")}`, name));
    if (kernel >= 0) enter(`k${kernel}`, D.kernels[kernel].name);
    leaves.set(t, {key: `t${t}`, up, ids: [t], chips, gone: +gone.has(t), fresh: +fresh.has(t)});
    up.items.push(leaves.get(t));
  };
  stage.recs.forEach(add);
  before?.recs.forEach(row => gone.has(row[0]) && add(row));
  for (const [t, inputs] of stage.recs) for (const i of inputs) {
    const again = home.get(t) !== home.get(i) && T[i].kernels.includes(home.get(t));
    if (leaves.has(i) && !again) pairs.push([i, t]);
  }
  const addLines = () => pairs.forEach(pair => addLine(...pair.map(t => leaves.get(t)), pair));
  setDepth(root, 0);
  addLines();
  foldEqual(root);
  setDepth(root, 0);
  addLines();
  return root;
}

function placeKernel(kernel, t) {          // in the phase, and of many in the layer, it ends in
  const paths = kernel < 0 ? [T[t].path] : D.kernels[kernel].tracks.map(k => T[k].path);
  const phase = PHASES[Math.max(...paths.map(path => PHASES.indexOf(path[0])))];
  return paths.findLast(path => path[0] === phase).slice(0, D.kernels.length < 60 ? 1 : 3);
}

function makeBox(up, key, name) {
  const box = {key, name, up, items: [], inner: new Map()};
  up?.items.push(box);
  return box;
}

function setDepth(item, depth) {
  item.depth = depth;
  item.lines = new Map();
  item.items?.forEach(inner => setDepth(inner, depth + 1));
}

function addLine(a, b, pair) {             // a line is in the innermost box around both ends
  while (a.depth > b.depth) a = a.up;
  while (b.depth > a.depth) b = b.up;
  while (a.up !== b.up) { a = a.up; b = b.up; }
  if (a === b) return;
  const {lines} = a.up, back = lines.get(`${b.key}>${a.key}`), key = `${a.key}>${b.key}`;
  if (back) back.both = true;              // never two opposite arrows: one with two heads
  else if (!lines.has(key)) lines.set(key, {a, b, pairs: []});
  (back || lines.get(key)).pairs.push(pair);
}

function foldEqual(box) {                  // equal neighbours are one box
  const equal = new Map();
  for (const item of box.items.filter(inner => inner.items)) {
    foldEqual(item);
    pushTo(equal, item.form, item);
  }
  const formOf = ({gone, ids: [t]}) => `${gone}${T[t].op}${T[t].spec}`;
  box.form = `(${box.items.map(item => item.form || formOf(item))})`;
  addUp(box);
  for (const same of equal.values())
    if (same.length > 2 && same.length < box.items.length && isConvex(box, new Set(same)))
      foldItems(box, same);
}

function addUp(box) {
  box.ids = box.items.flatMap(item => item.ids);
  box.gone = sum(box.items, item => item.gone);
  box.fresh = sum(box.items, item => item.fresh);
}

function isConvex(box, inside) {           // a way out and in again would make a circle
  const next = new Map(), seen = new Set(), now = item => item.up === box ? item : item.up;
  for (const {a, b, both} of box.lines.values()) {
    pushTo(next, now(a), now(b));
    if (both) pushTo(next, now(b), now(a));
  }
  const after = item => next.get(item) || [];
  for (const todo = [...inside].flatMap(after).filter(b => !inside.has(b)); todo.length;) {
    const item = todo.pop();
    if (inside.has(item)) return false;
    if (!seen.has(item)) todo.push(...after(item));
    seen.add(item);
  }
  return true;
}

function foldItems(box, same) {
  const fold = {name: nameRange(same.map(item => item.name)), up: box, fold: true, items: same};
  addUp(fold);
  fold.key = same[0].key[0] === "k" ? `m${fold.ids.join(".")}`
    : `b${same.map(item => item.key.slice(1)).join("|")}`;
  box.items.splice(box.items.indexOf(same[0]), 0, fold);
  box.items = box.items.filter(item => !same.includes(item));
  same.forEach(item => { item.up = fold; });
}

function collect(box, isWanted) {          // items inside, inner ones first
  return box.items.flatMap(item => [...item.items ? collect(item, isWanted) : [],
    ...isWanted(item) ? [item] : []]);
}

// ---- sizes and places -------------------------------------------------------

function measureItem(item) {               // of boxes only those whose items are of other sizes
  if (!item.items) return measureLeaf(item);
  item.open = !item.up || isOpen(item);
  if (item.open) item.items.forEach(measureItem);
  const sizes = item.open ? item.items.map(({w, h}) => `${w},${h}`).join(";") : "none";
  if (item.sizes === sizes) return;
  Object.assign(item, {sizes, moved: true, h: HEAD});
  item.w = measureText(item.name) + measureText(`  ${item.ids.length}`) + 48;
  if (!item.open) return;
  [item.wide, item.high] = packParts(splitParts(item).map(arrangePart));
  item.w = Math.max(item.wide + 2 * PAD, item.w);
  item.h = item.high + HEAD + PAD;
}

function measureLeaf(item) {
  if (item.w) return;
  const t = T[item.ids[0]], chips = sum(item.chips, name => measureText(shorten(name)) + 18);
  item.w = Math.max(measureText(`+ ${t.op}`), measureText(t.spec), chips - 6) + 20;
  item.h = item.chips.length ? 64 : 42;
}

function shorten(name) {
  return name.length > 22 ? `${name.slice(0, 10)}…${name.slice(-11)}` : name;
}

function splitParts(box) {                 // the items that lines connect
  box.items.forEach((item, order) => {
    Object.assign(item, {order, part: {items: [item], lines: []}});
  });
  for (const line of box.lines.values()) {
    const {part} = line.a, {items, lines} = line.b.part;
    if (part !== line.b.part) {
      part.items.push(...items);
      part.lines.push(...lines);
      items.forEach(item => { item.part = part; });
    }
    part.lines.push(line);
  }
  const parts = [...new Set(box.items.map(item => item.part))];
  parts.forEach(part => part.items.sort((p, q) => p.order - q.order));
  return parts.sort((p, q) => (q.items.length > 1) - (p.items.length > 1));
}

function arrangePart(part) {               // Dagre, once for each form
  const {items, lines} = part, index = new Map(items.map((item, k) => [item, k]));
  if (!lines.length) return {...items[0], part, at: [[0, 0]], points: []};
  const ends = lines.map(line => [index.get(line.a), index.get(line.b)]);
  const form = `${items.map(i => `${i.w},${i.h}`).join(";")}|${ends.join(";")}`;
  const size = `${items.length},${ends.length}`;
  let least = arranged.has(form) ? 0 : Infinity;
  for (const order of orderOf.get(size) || ORDERS) {
    if (least <= ends.length / 20) break;  // few cross
    const places = runDagre(items, ends, order), crossings = countCrossings(places.points);
    if (crossings >= least) continue;
    least = crossings;
    arranged.set(form, places);
    orderOf.set(size, [order]);
  }
  return {part, ...arranged.get(form)};
}

function runDagre(items, ends, [back, endsBack, ranker = "tight-tree"]) {
  const g = new dagre.graphlib.Graph().setDefaultEdgeLabel(() => ({}));
  const key = k => `n${k}`, turn = (list, yes) => yes ? list.toReversed() : list;
  g.setGraph({nodesep: GAP, ranksep: 28, edgesep: 12, ranker});
  turn([...items.keys()], back).forEach(
    k => g.setNode(key(k), {width: items[k].w, height: items[k].h}));
  turn(ends, endsBack).forEach(([a, b]) => g.setEdge(key(a), key(b)));
  dagre.layout(g);
  const at = items.map(({w, h}, k) => [g.node(key(k)).x - w / 2, g.node(key(k)).y - h / 2]);
  const points = ends.map(([a, b]) => g.edge(key(a), key(b)).points.map(p => [p.x, p.y]));
  const xs = points.flat().map(p => p[0]), left = Math.min(0, ...xs), {width, height} = g.graph();
  [...at, ...points.flat()].forEach(p => { p[0] -= left; });
  return {w: Math.max(width, ...xs) - left, h: height, at, points};
}

function countCrossings(paths) {           // of lines that begin and end apart
  const side = ([a, b], [c, d], [x, y]) => Math.sign((c - a) * (y - b) - (d - b) * (x - a));
  const cross = (p, q, r, s) =>
    side(p, q, r) * side(p, q, s) < 0 && side(r, s, p) * side(r, s, q) < 0;
  const near = ([a, b], [c, d]) => Math.hypot(a - c, b - d) < 12;
  const meet = (p, q) => !near(p[0], q[0]) && !near(p.at(-1), q.at(-1)) && p.slice(1).some(
    (end, k) => q.slice(1).some((stop, j) => cross(p[k], end, q[j], stop)));
  return sum(paths, p => paths.filter(q => p !== q && meet(p, q)).length) / 2;
}

function packParts(parts) {                // parts side by side, in rows; single items in columns
  const cell = Math.max(0, ...parts.map(p => p.part.items.length > 1 ? 0 : p.w));
  const area = sum(parts, p => (p.w + GAP) * (p.h + GAP));
  const limit = Math.max(...parts.map(p => p.w), Math.sqrt(area * 1.7));
  let x = 0, y = 0, high = 0, wide = 0;
  for (const {part, w, h, at, points} of parts) {
    const room = part.items.length > 1 ? w : cell;
    if (x && x + room > limit) { x = 0; y += high + GAP; high = 0; }
    part.items.forEach((item, k) => { item.x = x + at[k][0]; item.y = y + at[k][1]; });
    part.lines.forEach((line, k) => { line.points = points[k].map(p => [p[0] + x, p[1] + y]); });
    wide = Math.max(wide, x + w);
    high = Math.max(high, h);
    x += room + GAP;
  }
  return [wide, y + high];
}
