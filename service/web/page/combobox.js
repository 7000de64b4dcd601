// A text field with suggestions below it, by the ARIA combobox pattern: the focus stays in the field, the arrow keys
// move in the list. A late answer never replaces a newer one.

import { bdi, make, wholeOf } from "./elements.js";
import { marked } from "./letters.js";

const PAUSE = 60;
// The lowest score of a prefix match; typos and weaker tiers have lower ones.
const PREFIX = 4;

// The groups of an answer of /suggest, each [title, rows], with the titles of all three. Categories come before shops that were found as a typo; a shop
// without a score is none.
export function suggested({ shops, categories }, typed, titles, counted, readable = String) {
  const part = (name, child, title) => make("span", { part: name, title }, child);
  const row = (kind, key, found, name, aside) => {
    const hit = marked(name, typed);
    return { kind, key, found, nodes: [part("name", hit ?? bdi(name), wholeOf(name)), part("aside", (!hit && marked(aside, typed)) || bdi(aside))] };
  };
  const shop = (found) => row("shop", found.id, found, found.name, readable(found.domain));
  const category = (found) => row("category", found.slug, found, found.category, counted(found.count));
  return [
    [titles[0], shops.filter(({ score = PREFIX }) => score >= PREFIX).map(shop)],
    [titles[1], categories.map(category)],
    [titles[2], shops.filter(({ score }) => score < PREFIX).map(shop)],
  ];
}

// ask(text, signal) returns groups, choose(row) opens a row, report(groups, failure) announces the outcome. By default
// the first key is sent immediately and later ones after a pause; `debounce` is the silence in ms that each waits for.
export function combobox(field, list, { ask, choose, report, debounce = 0 }) {
  let seq = 0;
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
    clearTimeout(timer);
    cancel();
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

  function defer() {
    clearTimeout(timer);
    if (debounce) cancel();
    const wait = Math.max(debounce, Math.max(lastAsked + PAUSE, notBefore) - performance.now());
    if (wait <= 0) request();
    else timer = setTimeout(request, wait);
  }

  // No answer to an earlier request is shown any more.
  function cancel() {
    seq += 1;
    asking?.abort();
  }

  async function request() {
    lastAsked = performance.now();
    cancel();
    const mine = seq;
    asking = new AbortController();
    try {
      const groups = await ask(field.value, asking.signal);
      if (mine === seq) show(groups);
    } catch (failure) {
      if (mine !== seq) return;
      leave();
      report([], failure);
      const wait = (failure.wait || 0) * 1000;
      notBefore = performance.now() + wait;
      if (wait) timer = setTimeout(request, wait);
    }
  }

  function show(groups) {
    // The active option stays active in the new list.
    const before = options[active];
    options = [];
    list.replaceChildren(...groups.filter(([, rows]) => rows.length).map(group));
    open(options.length > 0);
    activate(options.findIndex(({ kind, key }) => kind === before?.kind && key === before.key));
    report(groups);
  }

  function group([title, rows], index) {
    const elements = rows.map((row) => {
      const at = options.length;
      const element = make("div", {
        role: "option", id: `suggestion-${at}`, part: "option", "aria-selected": "false", "data-kind": row.kind, "data-key": row.key,
        onclick: () => pick(at), onpointermove: () => active !== at && activate(at),
      }, row.nodes);
      options.push({ ...row, element });
      return element;
    });
    return title ? make("div", { role: "group", "aria-labelledby": `group-${index}` },
      make("div", { part: "group", id: `group-${index}`, role: "presentation" }, title), elements) : elements[0];
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
    // While characters are composed, the keys belong to the input method.
    if (event.isComposing || event.ctrlKey || event.metaKey || !keys[event.key]) return;
    if (keys[event.key]() !== false) event.preventDefault();
  });
  field.addEventListener("input", () => {
    activate(-1);
    if (field.value.trim()) return defer();
    leave();
    report([]);
  });
  field.addEventListener("blur", leave);
  // A click into the list does not take the focus from the field.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  return { leave, defer };
}
