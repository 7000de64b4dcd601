// Puts the page together: the address decides what is shown, and everything that is done changes the address.

import { account, countryChoice } from "./account.js";
import { hrefOf, placeOf, shopPlace } from "./address.js";
import { suggest } from "./api.js";
import { combobox, suggested } from "./combobox.js";
import { readable } from "./domains.js";
import { make, said } from "./elements.js";
import { problem, sentence } from "./failures.js";
import { listing } from "./listing.js";
import { shop } from "./shop.js";
import { start } from "./start.js";
import { count, moment } from "./words.js";

const VIEWS = { start, results: listing, category: listing, shop };
const NAME = document.title;
const [view, status, field, list, country, corner, panel, asOf] = ["view", "status", "search", "suggestions", "country",
  "corner", "account", "as-of"].map((id) => document.getElementById(id));

let place = placeOf();
let shown = null;
let turn = 0;
let tokens = 0;
let asking = null;

function announce(text, shownToo = false) {
  status.classList.toggle("shown", shownToo);
  status.textContent = text;
}

function go(to, { replace = false } = {}) {
  history.replaceState({ scroll: scrollY }, "");
  history[replace ? "replaceState" : "pushState"](null, "", hrefOf(to));
  show(to, { still: replace });
}

// still: what is typed stays, and so does the focus.
async function show(to, { scroll = 0, still = false } = {}) {
  const only_country = still && view.getAttribute("aria-busy") === "false" && shown.adapt?.(to);
  place = to;
  country.value = to.country;
  if (country.selectedIndex < 0) country.value = "";
  if (only_country) return;
  finder.leave();
  if (!still) field.value = to.query ?? "";
  const typed = field.value;
  turn += 1;
  const [mine, known] = [turn, tokens];
  asking?.abort();
  asking = new AbortController();
  view.setAttribute("aria-busy", "true");
  let made;
  try {
    made = await VIEWS[to.view](to, asking.signal, announce);
  } catch (failure) {
    made = failed(failure, to);
  }
  if (mine !== turn) return;
  shown = made;
  paint(made, scroll);
  if (known !== tokens) made.tokenChanged?.();
  // Who has begun to type meanwhile is not interrupted.
  if (!still && field.value === typed) view.querySelector("h1").focus({ preventScroll: true });
}

function failed(failure, to) {
  const title = failure.status === 404 ? "Not in the directory" : "No answer";
  return {
    kind: "error",
    title,
    told: sentence(failure),
    nodes: [
      make("h1", { tabindex: "-1" }, title),
      problem(failure, () => show(to), { button: { id: "retry" } }),
      make("p", {}, make("a", { href: hrefOf({ view: "start" }) }, "To the start")),
    ],
  };
}

function paint(made, scroll) {
  view.replaceChildren(...made.nodes.filter(Boolean));
  view.dataset.view = made.kind;
  view.setAttribute("aria-busy", "false");
  // A name may hold signs that turn the direction of what follows; in a title nothing else holds them in.
  const title = made.title.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  document.title = title ? `${title} – ${NAME}` : NAME;
  asOf.replaceChildren(...(made.asOf ? ["Data as of ", moment(made.asOf)] : []));
  announce(made.told);
  scrollTo(0, scroll);
}

const search = () => go({ view: "results", query: field.value.trim(), country: place.country });

async function suggestions(text, signal) {
  const groups = suggested(await suggest(text, place.country, signal), text, (number) => count(number, "shop"), readable);
  const all = { kind: "all", nodes: [make("span", { part: "name" }, "All results for “", said(text.trim()), "”")] };
  return groups.some(([, rows]) => rows.length) ? [...groups, ["", [all]]] : groups;
}

function announceSuggestions(groups, failure) {
  if (failure) return announce(`Suggestions: ${sentence(failure)}`, true);
  const number = (kind) => groups.flatMap(([, rows]) => rows).filter((row) => row.kind === kind).length;
  const [shops, categories] = [number("shop"), number("category")];
  announce(!groups.length ? "" : !shops && !categories ? "Nothing to suggest."
    : `${count(shops, "shop")} and ${count(categories, "category", "categories")} suggested.`);
}

const finder = combobox(field, list, {
  ask: suggestions,
  choose: ({ kind, found }) => {
    if (kind === "all") search();
    else go(kind === "shop" ? shopPlace(found, place.country)
      : { view: "category", query: "", category: found.slug, country: place.country });
  },
  report: announceSuggestions,
});

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.target) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || url.pathname !== location.pathname) return;
  event.preventDefault();
  if (url.hash) view.focus();
  else go(placeOf(url.search));
});

addEventListener("popstate", (event) => show(placeOf(), { scroll: event.state?.scroll ?? 0 }));

countryChoice(country, (chosen) => go({ ...place, country: chosen, ...("offset" in place && { offset: 0 }) }, { replace: true }));
account(corner, panel, (text) => {
  announce(text, true);
  tokens += 1;
  shown?.tokenChanged?.();
});

history.scrollRestoration = "manual";
field.value ||= place.query ?? "";
show(place, { still: true });
if (place.view === "start") {
  field.focus();
  // What was typed before this ran.
  if (field.value.trim()) finder.ponder();
}
