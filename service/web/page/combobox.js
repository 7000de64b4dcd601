// A text field with suggestions below it, after the ARIA pattern: the focus stays in the field, the arrow keys move in
// the list. A late answer never replaces a newer one.

import { make, said } from "./elements.js";
import { marked } from "./letters.js";

const PAUSE = 60;
// A score below it is a typo's or a weaker tier's.
const BEGUN = 4;

// The groups of an answer of /suggest, each [title, rows]. Categories stand before shops that only a typo found.
export function suggested({ shops, categories }, typed, counted, readable = String) {
  const part = (name, child) => make("span", { part: name }, child);
  const row = (kind, key, found, name, aside) => {
    const hit = marked(name, typed);
    return { kind, key, found, nodes: [part("name", hit ?? said(name)), part("aside", (!hit && marked(aside, typed)) || said(aside))] };
  };
  const shop = (found) => row("shop", found.id, found, found.name, readable(found.domain));
  const category = (found) => row("category", found.slug, found, found.category, counted(found.count));
  return [
    ["Shops", shops.filter(({ score }) => score >= BEGUN).map(shop)],
    ["Categories", categories.map(category)],
    ["Similar names", shops.filter(({ score }) => score < BEGUN).map(shop)],
  ];
}

// ask(text, signal) returns groups, choose(row) opens one, report(groups, failure) announces how it went.
export function combobox(field, list, { ask, choose, report }) {
  let turn = 0;
  let asking;
  let timer;
  let lastAsked = -PAUSE;
  let notBefore = 0;
  let options = [];
  let active = -1;

  function open(shown) {
    list.hidden = !shown;
    field.setAttribute("aria-expanded", String(shown));
  }

  function leave() {
    turn += 1;
    clearTimeout(timer);
    asking?.abort();
    open(false);
    activate(-1);
  }

  function activate(at) {
    options[active]?.element.setAttribute("aria-selected", "false");
    active = at;
    const element = options[at]?.element;
    if (!element) return field.removeAttribute("aria-activedescendant");
    element.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", element.id);
    element.scrollIntoView({ block: "nearest" });
  }

  // The first key is asked for immediately, further ones after a pause.
  function ponder() {
    clearTimeout(timer);
    const wait = Math.max(lastAsked + PAUSE, notBefore) - performance.now();
    if (wait <= 0) request();
    else timer = setTimeout(request, wait);
  }

  async function request() {
    lastAsked = performance.now();
    const mine = (turn += 1);
    asking?.abort();
    asking = new AbortController();
    try {
      const groups = await ask(field.value, asking.signal);
      if (mine === turn) show(groups);
    } catch (failure) {
      if (mine !== turn) return;
      leave();
      report([], failure);
      const wait = (failure.wait || 0) * 1000;
      notBefore = performance.now() + wait;
      if (wait) timer = setTimeout(request, wait);
    }
  }

  function show(groups) {
    // An option that is active when the answer comes stays active.
    const held = options[active];
    options = [];
    list.replaceChildren(...groups.filter(([, rows]) => rows.length).map(group));
    open(options.length > 0);
    activate(options.findIndex(({ kind, key }) => kind === held?.kind && key === held.key));
    report(groups);
  }

  function group([title, rows], place) {
    const elements = rows.map((row) => {
      const at = options.length;
      const element = make("div", {
        role: "option", id: `suggestion-${at}`, part: "option", "aria-selected": "false", "data-kind": row.kind, "data-key": row.key,
        onclick: () => pick(at), onpointermove: () => active !== at && activate(at),
      }, row.nodes);
      options.push({ ...row, element });
      return element;
    });
    return title ? make("div", { role: "group", "aria-labelledby": `group-${place}` },
      make("div", { part: "group", id: `group-${place}`, role: "presentation" }, title), elements) : elements[0];
  }

  function pick(at) {
    choose(options[at]);
    leave();
  }

  const keys = {
    ArrowDown: () => (list.hidden ? request() : activate((active + 1) % options.length)),
    ArrowUp: () => !list.hidden && activate((active > 0 ? active : options.length) - 1),
    Enter: () => active >= 0 && pick(active),
    Escape: () => {
      if (list.hidden) field.value = "";
      leave();
      report([]);
    },
  };

  field.addEventListener("keydown", (event) => {
    // While signs are being composed, the keys belong to the input method.
    if (event.isComposing || event.ctrlKey || event.metaKey || !keys[event.key]) return;
    if (keys[event.key]() !== false) event.preventDefault();
  });
  field.addEventListener("input", () => {
    activate(-1);
    if (field.value.trim()) return ponder();
    leave();
    report([]);
  });
  field.addEventListener("blur", leave);
  // The field keeps the focus while somebody clicks into the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  return { leave, ponder };
}
