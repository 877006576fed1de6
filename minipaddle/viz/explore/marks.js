// The panes, and marks on what belongs to the selection. Elements have an address (data-sel).

const PANES = ["py", "graph", "c", "arena", "time", "ranks"];
const escape = text => String(text).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
const hueOf = kernel => (kernel ?? 0) * 137 % 360;

function fillPanes() {
  $("title").textContent = D.title;
  $("ruler").innerHTML = D.panes.ruler;
  document.body.classList.toggle("ranked", Boolean(D.ranks));
  $("ranks").hidden = !D.ranks;
  for (const id of PANES.filter(name => name !== "graph")) {
    const [html, fact] = D.panes[id], words = $(id).querySelector(".fact");
    const body = $(id).querySelector(".body");
    if (words) words.textContent = fact;
    body.innerHTML = Array.isArray(html) ? `<pre>${html.map(writeBlock).join("")}</pre>` : html;
    setStop($(id), body.querySelector("[data-sel]"));
  }
  blocks.forEach((block, k) => {
    block.element = $("c").querySelectorAll("pre > div")[k];
    block.element.block = block;
    sight.observe(block.element);
  });
}

function setStop(group, stop) {            // the one element of a group that Tab reaches
  group.querySelectorAll("button,[tabindex='0']").forEach(e => { e.tabIndex = -1; });
  if (stop) stop.tabIndex = 0;
}

function press(name, value) {              // of the buttons data-NAME that of the value
  all(`button[data-${name}]`).forEach(
    b => b.setAttribute("aria-pressed", b.dataset[name] === String(value)));
}

const blocks = Array.isArray(D.panes.c[0]) ? D.panes.c[0] : [];     // lines of C: drawn when seen
const sight = new IntersectionObserver(seen => seen.forEach(
  ({isIntersecting, target}) => isIntersecting && fillBlock(target)));

function writeBlock([from, to, kernel]) {
  const style = `style="height:${(to - from + 1) * 18}px;--hue:${hueOf(kernel)}"`;
  return kernel < 0 ? `<div class="rest" ${style}></div>` : `<div class="kernel" tabindex="-1" `
    + `data-sel="n${D.kernels[kernel].name}" data-mark="has" ${style}></div>`;
}

function fillBlock(element) {
  if (element.firstChild) return;
  element.innerHTML = element.block[3];
  mark(element, "hit", state.tracks);
}

// ---- marks and words --------------------------------------------------------

function mark(root, kind, tracks) {        // kind: "hit", or "lit" for what the pointer is on
  const some = list => list.some(t => tracks.has(t));
  for (const e of root.querySelectorAll("[data-sel]")) {
    e.sel ??= e.dataset.sel;
    const holds = some(e.tracks ??= tracksOf(e.sel)), isThis = e.sel === state.address;
    const isHit = holds && !e.dataset.mark && (e.tagName !== "B" || some(ofSpan[e.sel.slice(1)]));
    const look = isHit + 2 * holds + 4 * isThis;
    if (kind === "hit" && e.item?.items && !e.item.open && holds)
      e.dataset.count = e.tracks.filter(t => tracks.has(t)).length;
    if (e[kind] === look) continue;
    e[kind] = look;
    e.classList.toggle(kind, isHit);
    if (kind === "lit") continue;
    e.classList.toggle("has", holds && !isHit);
    e.classList.toggle("this", isThis);
  }
  for (const g of kind === "hit" ? root.querySelectorAll(".line") : [])
    g.classList.toggle("hit", g.line.pairs.some(pair => pair.every(t => tracks.has(t))));
}

function markAll(from) {                   // panes but that of the click scroll to a mark
  const first = Math.min(...[...state.tracks].flatMap(t => T[t].lines));
  const own = blocks.find(({element}) => element.dataset.sel === state.address);
  const block = own || blocks.findLast(([from, to]) => from <= first && first <= to);
  if (block) fillBlock(block.element);
  mark(document, "hit", state.tracks);
  D.stages.forEach((stage, k) => $("ruler").children[k].classList.toggle("hit",
    [...stage.gone, ...stage.new].some(t => state.tracks.has(t))));
  say();
  const seen = "[data-sel]:not([aria-expanded=true], [hidden] *)";
  const isGradient = e => e.tracks.some(t => state.gradients.has(t));
  scrollTo(...all(".body").filter(b => b.parentElement.id !== from).map(body => [body,
    state.gradients && [...body.querySelectorAll(`.hit${seen}`)].find(isGradient)
    || ["this", "hit", "has"].map(name => body.querySelector(`.${name}${seen}`)).find(Boolean),
  ]).filter(view => view[1]));
}

function scrollTo(...views) {              // measures all first: one layout
  const sides = views.map(view => view.map(e => e.getBoundingClientRect()));
  views.forEach(([body, {item}], k) => {
    const [a, b] = sides[k], least = 8 + 24 * scale * (item?.depth || 0);    // heads of boxes
    if (b.top < a.top + least || b.bottom > a.bottom - 8)
      body.scrollTop += b.top - a.top - Math.max(least, (a.height - b.height) / 3);
    if (b.left < a.left || b.left > a.right - Math.min(b.width, a.width / 2))
      body.scrollLeft += b.left - a.left - Math.max(8, (a.width - b.width) / 2);
  });
}

function say() {                           // the chain of the selection
  const S = state.tracks, isOf = t => S.has(t), stage = D.stages[state.stage], chain = [];
  const put = (n, words, data) => n && chain.push(`<button data-${data}>${escape(words)}</button>`);
  const sel = (address, words) =>
    `<button data-sel="${escape(address)}">${escape(words)}</button>`;
  const here = [...S].filter(t => stage.here.has(t));
  const gone = D.stages.findLast((s, k) => k <= state.stage && s.gone.some(isOf));
  const other = gone || D.stages.find((s, k) => k > state.stage && s.new.some(isOf));
  put(here.length, `${count(here.length, "record")} here`, 'go="graph"');
  put(!here.length && other, `${gone ? "gone" : "new"} after ${other?.name}`,
    `stage="${D.stages.indexOf(other)}"`);
  const kernels = [...new Set([...S].flatMap(t => T[t].kernels))].map(k => D.kernels[k]);
  const names = [...new Set(kernels.map(kernel => kernel.name))], more = names.length - 3;
  if (names.length) chain.push(names.slice(0, 3).map(name => sel(`n${name}`, name)).join(", ")
    + (more > 0 ? `, <button data-go="time">${more} more</button>` : ""));
  const rows = new Set([...S].flatMap(t => T[t].lines)).size;
  put(rows, `${count(rows, "line")} of C`, 'go="c"');
  const us = sum(kernels, kernel => kernel.us || 0);
  put(us, `kernels of ${us.toFixed(1)} µs (${Math.round(100 * us / TOTAL)} %)`, 'go="time"');
  const places = (D.arena?.blocks || []).filter(block => block[4].some(isOf));
  const bytes = writeBytes(sum(places, block => block[1]));
  put(places.length, `${count(places.length, "block")}, ${bytes}`, 'go="arena"');
  const last = state.address[0] === "a" && D.arena.blocks[state.address.slice(1)][5];
  if (last) chain.push(`last read by ${sel(last, last[0] === "n" ? last.slice(1) : nameOf(last))}`);
  const grads = new Set(findGradients(S).filter(t => stage.here.has(t))).size;
  put(grads && !state.gradients, `∂ ${count(grads, "gradient")}`, "gradients");
  const again = new Set([...S].map(t => D.twins[t]).filter(Boolean));
  put(again.size, `${again.size} computed again`, `sel="m${[...again].join(".")}"`);
  const sent = (D.ranks || []).flatMap(rank => rank.recs).filter(([t, , how]) => how && S.has(t));
  put(sent.length, `${count(sent.length, "message")}, ${writeBytes(sum(sent, row => row[3]))}`,
    'go="ranks"');
  $("said").innerHTML = state.address
    ? [`<b>${escape(nameOf(state.address))}</b>`, ...chain].join(" → ")
    : "Select an expression, a node, a kernel, a line of C or a block of memory."
      + " Press <kbd>?</kbd> for the keys.";
}
