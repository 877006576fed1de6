// The state of the page, and what the pointer, the keys and the address bar do to it.

const state = {stage: 0, address: "", tracks: new Set(), gradients: false,
  open: new Set(), opened: new Set()};
const wide = matchMedia("(min-width: 900px)"), asked = location.hash;

function select(address, from, gradients = false) {
  const ids = tracksOf(address), family = findFamily(ids), more = findGradients(family);
  state.address = ids.length || address[0] === "f" ? address : "";
  state.gradients = gradients && new Set(more);
  state.tracks = gradients ? new Set([...family, ...findFamily(more)]) : family;
  if (from !== "graph" && state.address && tree.shown) openAround(state.tracks);
  markAll(from);
  writeHash();
}

async function setStage(k) {
  const stage = D.stages[k], fresh = !tree || stage?.byKernel !== D.stages[state.stage].byKernel;
  if (!stage) return;
  state.stage = k;
  stage.here ||= new Set(stage.recs.map(row => row[0]));
  tree = buildTree(stage, D.stages[k - 1]);
  if (world.contains(document.activeElement)) field.focus();
  if (field.clientWidth) await show(fresh);
  press("stage", k);
  $("ruler").children[k].scrollIntoView({block: "nearest", inline: "nearest"});
  $("rules").innerHTML = D.panes.rules[k];
  markAll("");
  writeHash();
}

async function show(fresh) {
  tree.shown = true;
  if (fresh) openFirst();
  if (!await prepare()) return;
  layOut();
  if (fresh) fit();
  if (state.address) openAround(state.tracks);
}

function setPane(id) {                     // one pane alone, or in a wide window all of them
  state.pane = id === state.pane && wide.matches ? "" : id;
  document.body.classList.toggle("alone", Boolean(state.pane));
  PANES.forEach(name => $(name).classList.toggle("front", name === state.pane));
  press("pane", state.pane);
}

function writeHash() {
  if (location.protocol === "about:") return;
  const sel = state.address && `&sel=${encodeURIComponent(writeAddress(state.address))}`;
  const hash = `#stage=${D.stages[state.stage].id}${sel}${sel && state.gradients ? "&grad" : ""}`;
  history.replaceState(null, "", hash.replaceAll("%3A", ":"));
}

async function readHash(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const k = D.stages.findIndex(stage => stage.id === words.get("stage"));
  if (words.has("theme")) setTheme(words.get("theme"));
  if (k >= 0 && k !== state.stage) await setStage(k);
  if (words.has("sel")) select(readAddress(words.get("sel")), "", words.has("grad"));
}

function setTheme(theme) { document.documentElement.style.colorScheme = theme; }

// ---- the pointer ------------------------------------------------------------

function pick(element, gradients) {        // the innermost; once more: the next one outside
  const chain = [];
  for (let e = element; e; e = e.parentElement.closest("[data-sel]")) chain.push(e.dataset.sel);
  const at = chain.indexOf(state.address), next = gradients === !!state.gradients ? at + 1 : at;
  select(chain[Math.max(0, next) % chain.length], element.closest("section")?.id || "", gradients);
}

const ACTS = {                             // of buttons, by their data
  stage: k => setStage(+k),
  pane: setPane,
  go: id => {
    if (!wide.matches) setPane(id);
    if (id === "graph" && tree.shown) openAround(state.tracks, Infinity);
    markAll("");
  },
  gradients: () => select(state.address, "", true),
  show: (view, button) => {
    for (const e of button.closest("section").querySelectorAll("[data-view],[data-show]"))
      e.dataset.view ? e.hidden = e.dataset.view !== view
        : e.setAttribute("aria-pressed", e === button);
  },
  key: key => act(key),
};

document.addEventListener("click", ({target, detail, shiftKey}) => {
  const element = target.closest("[data-sel],button"), item = element?.item;
  const kind = Object.keys(ACTS).find(name => element && name in element.dataset);
  if (kind) ACTS[kind](element.dataset[kind], element);
  else if (item?.items && (detail === 2 || target.matches(".turn"))) toggleItem(item);
  else if (element?.dataset.sel) pick(element, shiftKey);
});

function hover({target}) {                 // lights what the pointer or the focus is on
  const address = target.closest?.("[data-sel]")?.dataset.sel || "";
  if (address !== hover.last) mark(document, "lit", findFamily(tracksOf(address)));
  hover.last = address;
}
document.addEventListener("pointerover", hover);
document.addEventListener("focusin", hover);

field.addEventListener("pointermove", event => {            // the mouse drags the graph
  const {movementX: x, movementY: y, pointerId, pointerType, buttons} = event;
  if (buttons !== 1 || pointerType !== "mouse") return;
  if (Math.hypot(x, y) < 3 && !field.hasPointerCapture(pointerId)) return;
  field.setPointerCapture(pointerId);
  field.scrollBy(-x, -y);
});
field.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.metaKey) return;
  zoom(Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
  event.preventDefault();
}, {passive: false});

// ---- the keys ---------------------------------------------------------------

const WAYS = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]};
const KEYS = {
  "/": () => $("find").focus(),
  "[": () => setStage(state.stage - 1),
  "]": () => setStage(state.stage + 1),
  "+": () => zoom(1.25),
  "-": () => zoom(.8),
  "0": fit,
  "e": () => openAll(true),
  "c": () => openAll(false),
  "g": () => state.address && select(state.address, "", !state.gradients),
  "k": () => $("hues").setAttribute("aria-pressed", document.body.classList.toggle("hues")),
  "t": () => {
    const isLight = getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)";
    setTheme(isLight ? "dark" : "light");
  },
  "?": () => $("help").showModal(),
  "Escape": () => wide.matches && state.pane ? setPane("") : select("", ""),
};

function act(key) {                        // says whether the key means anything
  const id = PANES[key - 1];
  if (id && (id !== "ranks" || D.ranks)) setPane(id);
  else if (key in KEYS) KEYS[key]();
  else return false;
  return true;
}

function rove(key, target) {               // one tab stop for a group; arrows move in it
  const group = target.closest("section,[role=toolbar]"), way = WAYS[key];
  if (!group || !way) return false;
  const list = [...group.querySelectorAll("[data-sel],button:enabled")].filter(
    e => e === target || e.tagName !== "B" || way[0]);
  const node = target === field ? world.querySelector(".cursor") : target.item && target;
  const next = node ? findNeighbour(node, way) : target === field ? world.querySelector(".n")
    : list[list.indexOf(target) + way[0] + way[1]];
  if (!next) return true;
  setStop(group, next);
  next.focus({preventScroll: true});
  if (group.matches("section")) scrollTo([group.querySelector(".body"), next]);
  return true;
}

document.addEventListener("keydown", event => {
  const {key, target, shiftKey} = event, typing = target === $("find"), {item} = target;
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (typing && key === "Enter") showNext();
  else if (typing && key === "Escape") $("find").value = "", select("", ""), field.focus();
  else if (typing) return;
  else if (key === "Enter" && item?.items) toggleItem(item);
  else if ((key === "Enter" || key === " ") && target.dataset.sel) pick(target, shiftKey);
  else if (!(rove(key, target) || act(key))) return;
  event.preventDefault();
});

$("find").addEventListener("input", () => {
  select(`f${$("find").value}`, "");
  showNext.at = -1;
});

function showNext() {                      // the next record that a search hit
  const hits = collect(tree, item => !item.items && !item.gone && state.tracks.has(item.ids[0]));
  if (!hits.length) return;
  const leaf = hits[showNext.at = ((showNext.at ?? -1) + 1) % hits.length];
  for (let box = leaf.up; box.up; box = box.up) state.opened.add(box.key);
  layOut();
  all(".cursor").forEach(e => e.classList.remove("cursor"));
  leaf.element.classList.add("cursor");
  scrollTo([field, leaf.element]);
}

addEventListener("message", ({data}) => /^(dark|light)$/.test(data?.theme) && setTheme(data.theme));
addEventListener("hashchange", () => readHash(location.hash));

// ---- the beginning ----------------------------------------------------------

fillPanes();
setPane(wide.matches ? "" : "py");
wide.addEventListener("change", () => setPane(wide.matches ? "" : "py"));
setStage(0).then(() => readHash(asked));
new ResizeObserver(async () => {           // the graph may be seen for the first time
  if (!field.clientWidth || tree.shown) return;
  await show(true);
  markAll("");
}).observe(field);
for (const group of all("[role=toolbar]")) setStop(group, group.querySelector("button"));
setStop(graph, field);
