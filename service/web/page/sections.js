// A part of the shop view that loads, fails and is retried independently of the others.

import { make } from "./elements.js";
import { problem } from "./failures.js";
import { t } from "./texts.js";

// How long, in ms, an answer may take until a skeleton says that it is awaited.
export const SOON = 150;

export const skeleton = (rows) => make("div", { class: "bones", "aria-hidden": "true" }, Array.from({ length: rows }, () => make("i")));

// load() returns [state, ...nodes], where the state is ok or missing.
export function section(id, title, load) {
  const heading = make("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  const body = make("div", { class: "body" });
  const element = make("section", { id, "aria-labelledby": heading.id }, heading, body);
  let seq = 0;

  function mark(state) {
    element.dataset.state = state;
    element.setAttribute("aria-busy", String(state === "loading"));
  }

  function set(...nodes) {
    const focused = body.contains(document.activeElement);
    body.replaceChildren(...nodes);
    if (focused) heading.focus();
  }

  async function fill() {
    seq += 1;
    const mine = seq;
    mark("loading");
    const late = setTimeout(() => mine === seq && set(skeleton(3)), SOON);
    let result;
    try {
      result = await load();
    } catch (failure) {
      if (failure.kind === "aborted") return;
      result = ["error", problem(failure, fill, { button: { "data-retry": id } })];
    } finally {
      clearTimeout(late);
    }
    if (mine !== seq) return;
    const [state, ...nodes] = result;
    mark(state);
    set(...nodes);
  }

  return { element, fill };
}

// The first of many rows, and a button that shows the others.
export function firstFew(rows, shown) {
  const list = make("ul", { class: "rows" }, rows);
  if (rows.length <= shown + 2) return [list];
  const rest = rows.slice(shown);
  for (const row of rest) row.hidden = true;
  const more = make("button", { type: "button", class: "quiet", onclick: () => {
    for (const row of rest) row.hidden = false;
    const next = rest[0].querySelector("a, button, input") ?? rest[0];
    if (next === rest[0]) next.tabIndex = -1;
    next.focus();
    more.remove();
  } }, t("show_more", { count: rest.length }));
  return [list, more];
}
