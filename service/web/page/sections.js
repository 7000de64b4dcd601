// A part of the shop view that loads, fails and is retried independently of the others.

import { make } from "./elements.js";
import { problem } from "./failures.js";

// load() returns [state, ...nodes], where the state is ok or missing.
export function section(id, title, load) {
  const heading = make("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  const body = make("div", { class: "body" });
  const element = make("section", { id, "aria-labelledby": heading.id }, heading, body);
  let seq = 0;

  function set(state, ...nodes) {
    const focused = body.contains(document.activeElement);
    element.dataset.state = state;
    element.setAttribute("aria-busy", String(state === "loading"));
    body.replaceChildren(...nodes);
    if (focused) heading.focus();
  }

  async function fill() {
    seq += 1;
    const mine = seq;
    set("loading", make("p", { class: "missing" }, "Looking …"));
    let result;
    try {
      result = await load();
    } catch (failure) {
      if (failure.kind === "aborted") return;
      result = ["error", problem(failure, fill, { button: { "data-retry": id } })];
    }
    if (mine === seq) set(...result);
  }

  return { element, fill };
}

// The first of many rows, and a button that shows the others; `memory` keeps that it was used.
export function firstFew(rows, shown, memory = {}) {
  const list = make("ul", { class: "rows" }, rows);
  if (memory.all || rows.length <= shown + 2) return [list];
  const rest = rows.slice(shown);
  for (const row of rest) row.hidden = true;
  const more = make("button", { type: "button", class: "quiet", onclick: () => {
    for (const row of rest) row.hidden = false;
    const next = rest[0].querySelector("a, button, input") ?? rest[0];
    if (next === rest[0]) next.tabIndex = -1;
    next.focus();
    more.remove();
    memory.all = true;
  } }, `Show ${rest.length} more`);
  return [list, more];
}
