// The graph: boxes in boxes are elements in elements, so what holds for a pane of text holds here.

const graph = $("graph"), field = graph.querySelector(".body"), world = $("world");
const isOpen = item => state.open.has(item.key) || state.opened.has(item.key);
let tree, scale = 1;

function layOut() {
  measureItem(tree);
  [tree, ...listOpen().reverse()].forEach(drawBox);
  mark(graph, "hit", state.tracks);
  setStop(graph, field);
}

function listOpen() { return collect(tree, item => item.items && isOpen(item)); }

function drawBox(box) {                    // if things in it moved
  const {inside = world, w, wide, high, items} = box;
  if (!box.moved || box.up?.open === false || !inside) return;
  const left = box.up ? (w - wide) / 2 : 0;
  Object.assign(inside.style, {width: `${wide}px`, height: `${high}px`, left: `${left}px`});
  if (!items[0].element) {
    inside.innerHTML = `<svg></svg>${items.map(writeItem).join("")}`;
    items.forEach((item, k) => {
      item.element = Object.assign(inside.children[k + 1], {item, tracks: item.ids});
      item.inside = item.element.querySelector(".inside");
    });
  }
  const lines = [...box.lines.values()], svg = inside.firstChild;
  svg.innerHTML = lines.map(writeLine).join("");
  lines.forEach((line, k) => { svg.children[k].line = line; });
  for (const {element, x, y, w, h, open, inside} of items) {
    const places = {left: x, top: y, width: w, height: h};
    for (const name in places) element.style[name] = `${places[name]}px`;
    if (!inside) continue;
    element.setAttribute("aria-expanded", open);
    inside.hidden = !open;
  }
  box.moved = false;
}

function writeItem({key, name, ids, items, gone, fresh, fold, chips, depth}) {
  const kernels = new Set(ids.flatMap(t => T[t].kernels)), {op, spec, attrs} = T[ids[0]];
  const change = (fresh ? `, ${fresh} new` : "") + (gone ? `, ${gone} gone` : "");
  const label = (items ? `${name}, ${count(ids.length - gone, "record")}`
    : `${op}(${attrs}) : ${spec}`) + change;
  const look = ["n", items ? "box" : "leaf", fold && "fold", kernels.size === 1 && "kernel",
    !items && fresh && "new", !items && gone && "gone"].filter(Boolean).join(" ");
  const chip = text => `<span class="chip">${escape(shorten(text))}</span>`;
  return `<div class="${look}" data-sel="${escape(key)}" tabindex="-1" role="treeitem" `
    + `aria-level="${depth}" aria-label="${escape(label)}" `
    + `style="--hue:${hueOf([...kernels][0])};--at:${depth - 1}" `
    + `title="${escape([label, ...chips || []].join("\n"))}">`
    + (items ? `<h4><i class="turn"></i>${escape(name)} <small>${ids.length - gone}</small></h4>`
      + '<div class="inside" hidden></div></div>'
    : `<b>${fresh ? "+ " : gone ? "− " : ""}${escape(op)}</b><p>${escape(spec)}</p>`
      + `${chips.map(chip).join("")}</div>`);
}

function writeLine({points: p, pairs, both}) {
  const n = p.length - 1, middle = (a, b) => `${(a[0] + b[0]) / 2},${(a[1] + b[1]) / 2}`;
  let d = `M${p[0]}L${middle(p[0], p[1])}`;
  for (let k = 1; k < n; k++) d += `Q${p[k]} ${middle(p[k], p[k + 1])}`;
  const [[a, b], [x, y]] = p.slice(-2), part = Math.min(1, 16 / Math.max(1, y - b));
  const at = `x="${x + (a - x) * part + 7}" y="${y + (b - y) * part + 2}"`;
  return `<g class="line${both ? " both" : ""}"><path d="${d}L${p[n]}"/>`
    + `${pairs.length > 1 ? `<text ${at}>×${pairs.length}</text>` : ""}</g>`;
}

// ---- the window -------------------------------------------------------------

function zoom(factor, x, y) {              // what is at a point of the window stays there
  const a = field.getBoundingClientRect(), before = world.getBoundingClientRect();
  scale = Math.min(3, Math.max(.05, scale * factor));
  world.style.zoom = scale;
  const after = world.getBoundingClientRect(), grown = after.width / before.width;
  const stay = (point, p, q) => q - point + (point - p) * grown;
  field.scrollLeft += stay(x ?? a.left + a.width / 2, before.left, after.left);
  field.scrollTop += stay(y ?? a.top + a.height / 2, before.top, after.top);
}

function fit() {                           // never below text of 11 px: a tall program is scrolled
  const {clientWidth: w, clientHeight: h} = field;
  const most = Math.min(1.15, (w - 32) / tree.wide, (h - 32) / tree.high);
  zoom(Math.max(LEAST, most) / scale);
  const a = field.getBoundingClientRect(), b = world.getBoundingClientRect();
  field.scrollLeft += b.left - a.left - (w - b.width) / 2;
  field.scrollTop += b.top - a.top - Math.max(16, (h - b.height) / 2);
}

function openFirst() {                     // the first levels that fit
  const fits = () => {
    measureItem(tree);
    return tree.wide * LEAST <= w - 32 && tree.high * LEAST <= h - 32;
  };
  const {clientWidth: w, clientHeight: h} = field;
  let misses = 0;
  state.open = new Set();
  for (const level = [tree]; level.length && fits();) for (const item of level.shift().items) {
    if (!(item.items?.length <= 10) || misses > 2) continue;
    state.open.add(item.key);
    if (fits()) level.push(item);
    else { misses++; state.open.delete(item.key); }
  }
}

function toggleItem(item) {                // the box stays where it was
  const before = item.element.getBoundingClientRect(), open = isOpen(item);
  state.opened.delete(item.key);
  open ? state.open.delete(item.key) : state.open.add(item.key);
  layOut();
  if (scale < LEAST) zoom(LEAST / scale);
  const after = item.element.getBoundingClientRect();
  field.scrollBy(after.left - before.left, after.top - before.top);
}

function openAround(tracks, most = 24) {   // boxes of a small selection open
  const hits = collect(tree, item => !item.items && tracks.has(item.ids[0]));
  const before = [...state.opened].join();
  state.opened = new Set();
  if (hits.length <= most) for (const leaf of hits)
    for (let box = leaf.up; box.up; box = box.up) state.opened.add(box.key);
  if (before !== [...state.opened].join()) layOut();
  if (hits.length && scale < LEAST) zoom(LEAST / scale);
}

async function openAll(yes) {
  state.open = new Set(yes ? collect(tree, item => item.items).map(box => box.key) : []);
  state.opened = new Set();
  if (!await prepare()) return;
  layOut();
  fit();
}

async function prepare() {                 // lays out in short tasks; false if another began since
  const turn = prepare.turn = {}, boxes = listOpen();
  let start = performance.now();
  for (const [list, work] of [[boxes, measureItem], [[tree], measureItem],
    [[tree, ...boxes.toReversed()], drawBox]]) for (const box of list) {
    work(box);
    if (performance.now() - start < 40) continue;
    await new Promise(resolve => setTimeout(resolve));
    if (turn !== prepare.turn) return false;
    start = performance.now();
  }
  return true;
}

function findNeighbour(element, [dx, dy]) {
  const middle = e => {
    const {left, right, top, bottom} = (e.querySelector("h4") || e).getBoundingClientRect();
    return [(left + right) / 2, (top + bottom) / 2];
  };
  const [x, y] = middle(element), others = all("#world .n:not([hidden] *)").map(e => {
    const [X, Y] = middle(e), along = (X - x) * dx + (Y - y) * dy;
    return [along > 4 ? along + 2.5 * Math.abs((X - x) * dy + (Y - y) * dx) : Infinity, e];
  });
  const [far, nearest] = others.sort((p, q) => p[0] - q[0])[0];
  return far < Infinity && nearest;
}
