// The page: its URL decides what is shown, and every action changes the URL.

import { account, countryChoice } from "./account.js";
import { hrefOf, routeOf, shopRoute } from "./address.js";
import { suggest } from "./api.js";
import { combobox, suggested } from "./combobox.js";
import { readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { problem, sentence } from "./failures.js";
import { listing } from "./listing.js";
import { shop } from "./shop.js";
import { start } from "./start.js";
import { count, dateTime } from "./format.js";

const VIEWS = { start, results: listing, category: listing, shop };
const NAME = document.title;
const [view, status, field, list, country, corner, panel, asOf] = ["view", "status", "search", "suggestions", "country",
  "corner", "account", "as-of"].map((id) => document.getElementById(id));

let route = routeOf();
let shown = null;
let seq = 0;
let tokens = 0;
let asking = null;

function announce(text, shownToo = false) {
  status.classList.toggle("shown", shownToo);
  status.textContent = text;
}

function go(to, { replace = false, still = replace } = {}) {
  history.replaceState({ scroll: scrollY }, "");
  history[replace ? "replaceState" : "pushState"](null, "", hrefOf(to));
  show(to, { still });
}

// still: the typed text, the focus and the place on the page stay.
async function show(to, { scroll = 0, still = false } = {}) {
  const only_country = still && view.getAttribute("aria-busy") === "false" && shown.adapt?.(to);
  route = to;
  country.value = to.country;
  if (country.selectedIndex < 0) country.value = "";
  country.options[0].text = to.countries?.[1] ? "Several" : "Any country";
  if (only_country) return;
  finder.leave();
  if (!still) field.value = to.query ?? "";
  const typed = field.value;
  seq += 1;
  const [mine, known] = [seq, tokens];
  asking?.abort();
  asking = new AbortController();
  view.setAttribute("aria-busy", "true");
  let made;
  try {
    made = await VIEWS[to.view](to, asking.signal, announce, go);
  } catch (failure) {
    made = failed(failure, to);
  }
  if (mine !== seq) return;
  shown = made;
  paint(made, scroll, still);
  if (known !== tokens) made.tokenChanged?.();
  // The focus does not move if the visitor has typed meanwhile.
  if (!still && field.value === typed) view.querySelector("h1").focus({ preventScroll: true });
}

function failed(failure, to) {
  const unknown = failure.status === 404 || failure.code === "unknown_category";
  const title = unknown ? "Not in the directory" : "No answer";
  return {
    kind: "error",
    title,
    status: sentence(failure),
    nodes: [
      make("h1", { tabindex: "-1" }, title),
      problem(failure, () => show(to), { button: { id: "retry" } }),
      make("p", { class: "links" },
        unknown && to.shop ? make("a", { href: hrefOf({ query: to.shop }) }, "Search for “", bdi(to.shop), "”") : null,
        make("a", { href: hrefOf({}) }, "To the start")),
    ],
  };
}

function paint(made, scroll, still) {
  // A filter that has the focus is made again.
  const focused = still && view.contains(document.activeElement) && document.activeElement.id;
  view.replaceChildren(...made.nodes.filter(Boolean));
  view.dataset.view = made.kind;
  view.setAttribute("aria-busy", "false");
  // A name may hold characters that change the text direction; a title has no markup to isolate them.
  const title = made.title.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  document.title = title ? `${title} – ${NAME}` : NAME;
  asOf.replaceChildren(...(made.asOf ? ["Data as of ", dateTime(made.asOf)] : []));
  announce(made.status);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  else scrollTo(0, scroll);
}

const search = () => go(routeOf(hrefOf({ query: field.value.trim(), categories: [], country: route.country })));

async function suggestions(text, signal) {
  const groups = suggested(await suggest(text, route.country, signal), text, (number) => count(number, "shop"), readable);
  const all = { kind: "all", nodes: [make("span", { part: "name" }, "All results for “", bdi(text.trim()), "”")] };
  return groups.some(([, rows]) => rows.length) ? [...groups, ["", [all]]] : groups;
}

function announceSuggestions(groups, failure) {
  if (failure) return announce(`Suggestions: ${sentence(failure)}`, true);
  const number = (kind) => groups.flatMap(([, rows]) => rows).filter((row) => row.kind === kind).length;
  const [shops, categories] = [number("shop"), number("category")];
  const nothing = groups.length && !shops && !categories;
  announce(nothing ? "Nothing to suggest."
    : groups.length ? `${count(shops, "shop")} and ${count(categories, "category", "categories")} suggested.` : "", nothing);
}

const finder = combobox(field, list, {
  ask: suggestions,
  choose: ({ kind, found }) => {
    if (kind === "all") search();
    else go(kind === "shop" ? shopRoute(found, route.country)
      : routeOf(hrefOf({ categories: [found.slug], country: route.country })));
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
  else go(routeOf(url.search));
});

addEventListener("popstate", (event) => show(routeOf(), { scroll: event.state?.scroll ?? 0 }));

countryChoice(country, (chosen) => go({ ...route, country: chosen,
  ...("offset" in route && { countries: chosen ? [chosen] : [], offset: 0 }) }, { replace: true }));
account(corner, panel, (text) => {
  announce(text, true);
  tokens += 1;
  shown?.tokenChanged?.();
});

history.scrollRestoration = "manual";
field.value ||= route.query ?? "";
show(route, { still: true });
if (route.view === "start") {
  field.focus();
  // The visitor may have typed before this script ran.
  if (field.value.trim()) finder.defer();
}
