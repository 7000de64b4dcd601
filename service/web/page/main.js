// The page: its URL decides what is shown, and every action changes the URL. Results while typing are the exception.

import { account, atHome, homeChoice } from "./account.js";
import { hrefOf, routeOf, shopRoute } from "./address.js";
import { forget, hasPlenty, suggest } from "./api.js";
import { categoryIcon, categoryName, loadNames } from "./categories.js";
import { combobox, suggested } from "./combobox.js";
import { readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { problem, sentence } from "./failures.js";
import { listing } from "./listing.js";
import { SOON, skeleton } from "./sections.js";
import { shop } from "./shop.js";
import { intro, start } from "./start.js";
import { SITE, badge, dateTime } from "./format.js";
import { phrase, t } from "./texts.js";

const VIEWS = { start, results: listing, category: listing, shop };
const brand = document.querySelector(".brand");
const [view, status, field, list, country, corner, panel, asOf] = ["view", "status", "search", "suggestions", "country",
  "corner", "account", "as-of"].map((id) => document.getElementById(id));

// What the address says, and the search whose results are shown while its text is typed, without an address yet.
let route = atHome(routeOf());
let followed = null;
let shown = null;
let seq = 0;
let tokens = 0;
let asking = null;
let answered = null;

function announce(text, shownToo = false) {
  status.classList.toggle("shown", shownToo);
  status.textContent = text;
}

function go(to, { replace = false, still = replace } = {}) {
  history.replaceState({ scroll: scrollY }, "");
  history[replace ? "replaceState" : "pushState"](null, "", hrefOf(to));
  show(to, { still });
}

// still: the typed text, the focus and the place on the page stay. live: so do the address, the title and the list of
// suggestions.
async function show(to, { scroll = 0, still = false, live = false } = {}) {
  const isReady = view.getAttribute("aria-busy") === "false";
  if (!live) {
    route = to;
    country.value = to.country;
    if (country.selectedIndex < 0) country.value = "";
    brand.href = hrefOf(atHome({ country: to.country }));
    country.options[0].text = to.countries?.[1] ? t("several_countries") : t("any_country");
    if (still && isReady && shown.adapt?.(to)) return;
    if (still && followed) return show(searchFor(field.value), { live: true });
    finder.leave();
    if (!still) field.value = to.query ?? "";
  }
  const typed = field.value;
  seq += 1;
  const [mine, known] = [seq, tokens];
  // While results are typed for, the shown view may stay under the pointer: what it asks is cut off with it, not before.
  if (!live || asking !== shown?.asking) asking?.abort();
  const own = new AbortController();
  asking = own;
  // What was found while typing is what Enter shows.
  const found = !live && isReady && shown.typed;
  let made = found && shown.kind === to.view && hrefOf(found) === hrefOf(to) ? shown : null;
  followed = live && to !== route ? to : null;
  view.setAttribute("aria-busy", "true");
  const late = setTimeout(() => mine === seq && !(live && isHeld()) && pretend(still, live), SOON);
  // The frame with the suggestions comes before the results.
  const frame = live && new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
  try {
    made ??= await (followed && !hasPlenty() ? onEnter(to) : VIEWS[to.view](to, own.signal, announce, go, live));
  } catch (failure) {
    made = failed(failure, to, { live });
  }
  await frame;
  while (live && mine === seq && isHeld()) await new Promise((done) => { free = done; });
  clearTimeout(late);
  if (mine !== seq) return;
  if (made !== shown) shown?.asking.abort();
  shown = made;
  made.asking = own;
  made.typed = followed;
  paint(made, scroll, still, live);
  if (!live) made.complete?.(own.signal);
  if (known !== tokens) made.tokenChanged?.();
  // The focus does not move if the visitor has typed meanwhile.
  if (!still && !live && field.value === typed) view.querySelector("h1").focus({ preventScroll: true });
}

function failed(failure, to, how) {
  const unknown = failure.status === 404 || failure.code === "unknown_category";
  const title = unknown ? t("not_in_directory") : t("no_answer");
  return {
    kind: "error",
    title,
    status: sentence(failure),
    nodes: [
      make("h1", { tabindex: "-1" }, title),
      problem(failure, () => show(to, how), { button: { id: "retry" } }),
      make("p", { class: "links" },
        unknown && to.shop ? make("a", { href: hrefOf({ query: to.shop }) }, phrase("search_for", { query: bdi(to.shop) })) : null,
        make("a", { href: hrefOf({ country: to.country }) }, t("to_start"))),
    ],
  };
}

// Nothing is looked up while typing when much of the quota is used.
const onEnter = ({ query }) => ({ nodes: [make("h1", { tabindex: "-1" }, phrase("press_enter", { query: bdi(query) }))] });

// The outline of a view that is awaited. What the server made stays, and so does a filter that has the focus.
function pretend(still, live) {
  if (!shown) return route.view !== "start" && view.querySelector("h1") ? null : view.append(skeleton(9));
  const parts = still && view.querySelector(".filters:focus-within") ? view.querySelectorAll(".head, .found") : [view];
  for (const part of parts) part.replaceChildren(skeleton(part.className === "head" ? 1 : 9));
  if (!live) announce(t("looking"));
}

function paint(made, scroll, still, live) {
  // A filter that has the focus is made again.
  const focused = still && view.contains(document.activeElement) && document.activeElement.id;
  view.replaceChildren(...made.nodes.filter(Boolean));
  view.dataset.view = made.kind ?? "results";
  view.setAttribute("aria-busy", "false");
  asOf.replaceChildren(...(made.asOf ? phrase("data_as_of", { time: dateTime(made.asOf) }) : []));
  if (live) return;
  entitle(made);
  announce(made.status);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  else scrollTo(0, scroll);
}

function entitle(made) {
  // A name may hold characters that change the text direction; a title has no markup to isolate them.
  const title = made.title.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  document.title = title ? `${title} – ${SITE.name}` : SITE.name;
}

const searchFor = (text) => routeOf(hrefOf({ query: text.trim(), categories: [], country: route.country }));
const search = () => go(searchFor(field.value));

// Shows the results of the typed text behind its suggestions, or again what the address says.
function follow() {
  if (field.value.trim() && answered?.text !== field.value) return;
  const found = searchFor(field.value);
  const to = field.value.trim() && hrefOf(found) !== hrefOf(route) ? found : route;
  if (hrefOf(to) === hrefOf(followed ?? route)) return;
  if (to === found) found.near = answered;
  show(to, { live: true });
}

// Whoever goes on from results that were found while typing can come back to them.
function commit() {
  if (!shown?.typed) return;
  history.pushState(null, "", hrefOf(shown.typed));
  entitle(shown);
  [route, shown.typed, followed] = [shown.typed, null, null];
}

// Nothing is replaced under a pointer that has moved there since the last key, nor around the focus.
let isPointed = false;
let free = null;
const isHeld = () => isPointed || view.contains(document.activeElement);
function move(pointed) {
  isPointed = pointed;
  if (!pointed) free?.();
}
// A browser may report a pointer that rests, when what is under it changes.
let place = "";
view.addEventListener("pointermove", ({ screenX, screenY }) => {
  const before = place;
  place = `${screenX} ${screenY}`;
  if (before && before !== place) move(true);
});
view.addEventListener("pointerleave", () => move(false));
// During this event, nothing has the focus, also where it only goes on within the view.
view.addEventListener("focusout", ({ relatedTarget }) => view.contains(relatedTarget) || free?.());
field.addEventListener("input", () => move(false));
view.addEventListener("change", commit, true);

async function suggestions(text, signal) {
  const [found] = await Promise.all([suggest(text, route.country, signal), loadNames(signal)]);
  answered = { ...found, text };
  const groups = suggested(answered, text, [t("shops"), t("categories"), t("similar_names")], (number) => t("shops_counted", { count: number }), readable);
  // By their images, and the categories of shops, rows are told apart.
  for (const { kind, found, nodes } of groups.flatMap(([, rows]) => rows)) {
    nodes.unshift(kind === "shop" ? badge(found) : categoryIcon(found.slug));
    if (kind === "shop") nodes.push(make("span", { part: "kind" }, bdi(categoryName(found.category))));
  }
  const all = { kind: "all", nodes: [make("span", { part: "name" }, phrase("all_results", { query: bdi(text.trim()) }))] };
  return groups.some(([, rows]) => rows.length) ? [...groups, ["", [all]]] : groups;
}

function announceSuggestions(groups, failure) {
  if (failure) return announce(t("suggestions_failed", { problem: sentence(failure) }), true);
  const number = (kind) => groups.flatMap(([, rows]) => rows).filter((row) => row.kind === kind).length;
  const [shops, categories] = [number("shop"), number("category")];
  const nothing = groups.length && !shops && !categories;
  announce(nothing ? t("nothing_suggested")
    : groups.length ? t("suggested", {
      shops: t("shops_counted", { count: shops }), categories: t("categories_counted", { count: categories }) }) : "", nothing);
  follow();
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

// The link to another language leads to the view that is shown, which the server makes in it.
function translate(link) {
  const url = new URL(location);
  url.searchParams.set("lang", link.hreflang);
  link.href = url;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.target) return;
  if (link.hreflang) return translate(link);
  const url = new URL(link.href);
  if (url.origin !== location.origin || url.pathname !== location.pathname) return;
  event.preventDefault();
  if (view.contains(link)) commit();
  if (url.hash) view.focus();
  else go(routeOf(url.search));
});

addEventListener("popstate", (event) => show(routeOf(), { scroll: event.state?.scroll ?? 0 }));

homeChoice(country, (chosen) => go({ ...route, country: chosen,
  ...("offset" in route && { countries: chosen ? [chosen] : [], offset: 0 }) }, { replace: true }));
account(corner, panel, (text) => {
  announce(text, true);
  tokens += 1;
  shown?.tokenChanged?.();
});

history.scrollRestoration = "manual";
if (route.country !== routeOf().country) {
  history.replaceState(null, "", hrefOf(route));
  forget("find_shop", "get_shop_policies");
}
field.value ||= route.query ?? "";
if (route.view === "start" && !view.querySelector("h1")) view.prepend(...intro());
// Whoever reads what the server made stays where they are in it.
show(route, { scroll: scrollY, still: true });
if (route.view === "start") {
  field.focus();
  // The visitor may have typed before this script ran.
  if (field.value.trim()) finder.defer();
}
