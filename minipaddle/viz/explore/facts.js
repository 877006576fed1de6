// The facts of one step. An address names a part of them, and stands for a set of tracks.

const $ = id => document.getElementById(id), all = query => [...document.querySelectorAll(query)];
const D = await readFacts($("facts").textContent);

async function readFacts(packed) {         // base64 of what zlib compressed
  const text = atob(packed), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

const T = D.tracks.map(([op, spec, span, path, attrs, from, forward]) => ({op, spec, span, attrs,
  from, forward, path: D.paths[path], into: [], grads: [], kernels: [], lines: []}));
const ofSpan = D.spans.map(() => []);      // tracks of a span, without those of calls in it
const spansOfLine = new Map();             // "src.line": spans that touch the line
T.forEach((t, k) => {
  t.from.forEach(p => T[p].into.push(k));
  T[t.forward]?.grads.push(k);
  ofSpan[t.span]?.push(k);
});
D.spans.forEach(([src, a, , b], k) => {
  for (let line = a; line <= b; line++) pushTo(spansOfLine, `${src}.${line}`, k);
});
D.kernels.forEach((kernel, k) => kernel.tracks.forEach(t => T[t].kernels.push(k)));
for (const line in D.own) D.own[line].forEach(t => T[t].lines.push(+line));
const TOTAL = sum(D.kernels, kernel => kernel.us || 0);

D.stages.forEach((stage, k) => {           // [a, b] are rows of the stage before
  stage.recs = stage.recs.flatMap(
    row => typeof row[1] === "number" ? D.stages[k - 1].recs.slice(...row) : [row]);
  const same = D.stages.slice(0, k).filter(s => s.name === stage.name).length;
  stage.id = stage.name + (same ? `~${same + 1}` : "");
  stage.byKernel = stage.name === "kernels" && D.kernels.length > 0;
});

function pushTo(map, key, value) {
  map.has(key) ? map.get(key).push(value) : map.set(key, [value]);
}
function sum(list, f) { return list.reduce((n, x) => n + f(x), 0); }
function count(n, noun) { return `${n} ${noun}${n === 1 ? "" : "s"}`; }
function writeBytes(n) {
  const power = n < 1024 ? 0 : n < 1 << 20 ? 1 : 2;
  return `${+(n / 1024 ** power).toFixed(power)} ${["B", "KiB", "MiB"][power]}`;
}

function findFamily(ids) {                 // tracks, where from and what became
  const family = new Set(ids);
  for (const way of ["from", "into"])
    for (const todo = [...ids]; todo.length;)
      for (const t of T[todo.pop()][way]) if (!family.has(t)) { family.add(t); todo.push(t); }
  return family;
}
function findGradients(ids) { return [...ids].flatMap(t => T[t].grads); }

// ---- addresses -------------------------------------------------------------

const inSpan = k => [...ofSpan[k], ...D.calls[k] || []];
const spansOn = ([src, line]) => spansOfLine.get(`${src}.${line}`) || [];
const KINDS = {                            // its letter: its tracks, of numbers or of words
  s: ([k]) => inSpan(k),
  l: place => spansOn(place).flatMap(inSpan),
  t: ids => ids,
  m: ids => ids,
  k: ([k]) => D.kernels[k].tracks,
  n: (_, name) => D.kernels.flatMap(kernel => kernel.name === name ? kernel.tracks : []),
  c: ([n]) => D.own[n] || [],
  a: ([k]) => D.arena.blocks[k][4],
  r: ([k, j]) => [D.ranks[k].recs[j][0]],
  g: ([k, j]) => [...D.stages[k].rules[j].gone, ...D.stages[k].rules[j].new],
  b: (_, keys) => keys.split("|").flatMap(
    key => findTracks(t => `${t.path.join("/")}/`.startsWith(`${key}/`))),
  f: (_, words) => words ? findTracks(t => wordsOf(t).includes(words.toLowerCase())) : [],
};
function tracksOf(address) {
  const words = address.slice(1);
  return KINDS[address[0]]?.(words.split(".").map(Number), words) || [];
}

function nameOf(address) {
  const kind = address[0], rest = address.slice(1), [a, b] = rest.split(".");
  const shown = all(`[data-sel="${CSS.escape(address)}"]`);
  const parts = e => (/[rg]/.test(kind) ? [...e.childNodes] : [e]).map(n => n.textContent);
  const words = shown.flatMap(parts).map(text => text.trim()).filter(Boolean).join(" ");
  if (kind === "s") return `‘${words}’`;
  if (kind === "l") return `${D.src[a].file}:${b}`;
  if (kind === "t") return `${T[a].op} ${T[a].spec}`;
  if (kind === "k") return D.kernels[a].name;
  const name = {m: "records", c: "C line", f: "search for", r: "rank", g: "rule"}[kind] || "";
  return `${name} ${/[rg]/.test(kind) ? words : shown[0]?.title || rest}`;
}

function findTracks(isWanted) { return T.flatMap((t, k) => isWanted(t) ? [k] : []); }
function wordsOf({op, spec, path, span, kernels}) {
  const [src, line] = D.spans[span] || [], source = D.src[src];
  const names = kernels.map(k => D.kernels[k].name);
  return [op, spec, ...path, ...names, source?.lines[line - source.first]].join(" ").toLowerCase();
}
function nameRange(names) {                // "blocks.0 … 9 (×10)"
  const [a, z] = [names[0], names.at(-1)], stem = a.replace(/\d+$/, "");
  const end = z.startsWith(stem) ? z.slice(stem.length) : z;
  return names.length === 1 ? a : `${a} … ${end} (×${names.length})`;
}

// In the address bar a span is "line:column", or with its end if it must: #stage=fusion&sel=19:12
const spanNames = D.spans.map(([, a, from, b, to]) => `${a}:${from}-${b}:${to}`);
function writeAddress(address) {
  if (address[0] === "l") return address.split(".")[1];
  if (address[0] !== "s") return address;
  const name = spanNames[address.slice(1)], [short] = name.split("-");
  return readAddress(short) === address ? short : name;
}
function readAddress(text) {
  if (!/^\d/.test(text)) return text;
  const size = ([, a, from, b, to]) => (b - a) * 1000 + to - from;
  const spans = [...spanNames.keys()].filter(k => `${spanNames[k]}-`.startsWith(`${text}-`));
  const [best] = spans.sort((p, q) => size(D.spans[p]) - size(D.spans[q]));
  return best >= 0 ? `s${best}`
    : `l${[...spansOfLine.keys()].find(key => key.split(".")[1] === text.split(":")[0])}`;
}
