// The shops that match a query or belong to a category, in pages, with filters.

import { hrefOf, shopRoute } from "./address.js";
import { call, hasPlenty, suggest } from "./api.js";
import { categoryIcon, categoryName, loadNames } from "./categories.js";
import { readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { filters } from "./filters.js";
import { marked } from "./letters.js";
import { factNodes, rowFacts } from "./rows.js";
import { SOON } from "./sections.js";
import { badge, countryName, joined, missing, named } from "./format.js";
import { numeral, phrase, t } from "./texts.js";

// As many as one call tells the codes and the policies of.
const PAGE = 20;
const NAMED = 3;
const OR = ` ${t("or")} `;

export async function listing(route, signal, announce, go, live) {
  const { query, offset, categories, country, countries, shipsTo, unsettled, hasCode } = route;
  const any = (values) => (values.length ? values : null);
  const [found] = await Promise.all([
    call("find_shop", {
      query, limit: PAGE, offset, facets: ["category", "country"], categories: any(categories), countries: any(countries),
      ships_to: shipsTo, include_unsettled: unsettled, has_code: hasCode,
    }, signal),
    loadNames(signal),
  ]);
  const shops = found.results;
  const near = await nearest(route, found, signal);
  const heading = title(route, found, near);
  const implied = meaning(shops, route);
  const results = shops.length
    ? make("ul", { class: "shops" }, shops.map((shop) => shopRow({ ...shop, ...found.rows?.[shop.id] }, route, implied)))
    : nothing(route, found, near);
  const list = make("div", { class: "found" }, results, paging(route, found.total_count));
  // What is known besides fills the rows, once; while typing, it is not asked for.
  let filled = found.rows || !shops.length;
  async function complete(asking) {
    if (filled || !hasPlenty()) return;
    filled = true;
    const home = shipsTo || country;
    const facts = await rowFacts(shops, home, asking);
    shops.forEach((shop, at) => results.children[at].querySelector(".known")
      .replaceChildren(...factNodes({ ...shop, ...facts[shop.id] }, home)));
  }
  // Quick answers are shown together.
  if (!live) await Promise.race([complete(signal), new Promise((resolve) => { setTimeout(resolve, SOON); })]);
  return {
    complete,
    kind: route.view,
    title: heading.text,
    asOf: found.asOf,
    status: t("shops_found", { count: found.total_count }),
    nodes: [make("div", { class: "narrowed" },
      make("div", { class: "head" },
        make("h1", { tabindex: "-1" }, heading.nodes),
        make("p", { class: "lead" }, found.total_count ? extent(route, shops.length, found.total_count) : difference(route, found, near)),
        notice(found),
        shops.length ? meant(found.did_you_mean, route.country) : null),
      filters(route, found, go), list)],
  };
}

function title({ query, categories }, found, near) {
  const names = categories.map(categoryName).join(OR);
  if (!query.trim()) {
    return names ? { text: names, nodes: [categoryIcon(categories[0]), bdi(names)] } : { text: t("all_shops"), nodes: [t("all_shops")] };
  }
  const nodes = phrase(opening(found, near), { query: bdi(query) });
  return names ? { text: t("query_in", { query, categories: names }), nodes: phrase("query_in", { query: nodes, categories: bdi(names) }) }
    : { text: query, nodes };
}

// What is nearest to a query without matches is its result: the page says so, and does not say that nothing was found.
function opening({ total_count: total, broader }, near) {
  if (total) return "shops_for";
  return broader?.length || near.shops.length || near.categories.length ? "closest_to" : "nothing_found_for";
}

// How what is closest differs from what was asked for.
function difference(route, { broader }, near) {
  const filtered = within(route);
  if (filtered) return t("no_fit_within", { filters: filtered });
  if (broader?.length) return t("no_fit_all_words");
  if (near.shops.length) return t("close_names");
  if (near.categories.length) return t("close_categories");
  return route.categories.length ? t("no_fit_categories") : t("no_fit");
}

// What the filters besides the categories ask of a shop; empty without any of them.
function within({ countries, shipsTo, unsettled, hasCode }) {
  return [
    shipsTo && t(unsettled ? "within_ships_or_silent" : "within_ships", { country: countryName(shipsTo) }),
    hasCode && t("within_code"),
    countries.length && t("within_countries", { countries: countries.map(countryName).join(OR) }),
  ].filter(Boolean).join(", ");
}

function extent(route, shown, total) {
  const [shops, filters] = [t("shops_counted", { count: total }), within(route)];
  const all = filters ? t("shops_within", { shops, filters }) : shops;
  return shown === 0 || total <= shown ? all
    : t("extent", { first: numeral(route.offset + 1), last: numeral(route.offset + shown), shops: all });
}

function notice({ results, ignored_terms: ignored, category_truncated: cut }) {
  const lines = [];
  // Without results, the heading says it.
  if (ignored.length && results.length) {
    lines.push(make("p", {}, phrase("ignored_words", { words: quoted(ignored) })));
  }
  if (cut) lines.push(make("p", {}, t("category_truncated")));
  return lines.length ? make("div", { id: "notice" }, lines) : null;
}

const quoted = (words) => joined(words.map((word) => make("q", {}, bdi(word))));

function meant(shops, country) {
  if (!shops.length) return null;
  const links = shops.map((shop) => make("a", { href: hrefOf(shopRoute(shop, country)) }, bdi(shop.name)));
  return make("p", { id: "did-you-mean" }, phrase("did_you_mean_one", { shops: joined(links, OR) }));
}

// The texts of a shop that a query finds it by; a category may be found by a synonym, which is in no answer.
const textsOf = ({ name, domain, aliases = [], categories = [] }) => [name, domain, ...aliases, ...categories.map(categoryName)];

// Of each shop in which no text matches, the only category that all of these have without being filtered by it: the query
// means it.
function meaning(shops, { query, categories: filtered }) {
  const silent = query.trim() ? shops.filter((shop) => !textsOf(shop).some((text) => marked(text, query))) : [];
  const shared = silent[0]?.categories.filter((slug) =>
    !filtered.includes(slug) && silent.every(({ categories }) => categories.includes(slug)));
  return new Map(shared?.length === 1 ? silent.map(({ id }) => [id, shared[0]]) : []);
}

function shopRow(shop, { query, country, shipsTo }, implied = new Map()) {
  const lit = (text) => marked(text, query) ?? bdi(text);
  const category = (slug) => (implied.get(shop.id) === slug ? make("mark", {}, bdi(categoryName(slug))) : lit(categoryName(slug)));
  return make("li", { "data-shop": shop.id },
    badge(shop),
    make("div", {},
      make("a", { href: hrefOf(shopRoute(shop, shipsTo || country)) }, named(shop.name, lit(shop.name))),
      make("span", { class: "aside" }, bdi(readable(shop.domain)))),
    shop.categories ? make("div", { class: "small" },
      make("span", {}, joined(shop.categories.map(category))),
      make("span", {}, sells(shop.countries) ?? missing(t("markets_not_stated"))),
      shop.offers_total ? make("span", {}, t("offers_counted", { count: shop.offers_total })) : null,
      shipsTo && shop.ships_to === "unknown"
        ? make("span", {}, missing(t("shipping_not_stated", { country: countryName(shipsTo) }))) : null) : null,
    shop.categories ? make("p", { class: "known" }, factNodes(shop, shipsTo || country)) : null);
}

// Where a shop states that it sells: some of its markets, and how many more there are.
function sells(codes) {
  if (!codes?.length) return null;
  if (codes.includes("WORLDWIDE")) return t("sells_worldwide");
  const [countries, more] = [codes.slice(0, NAMED).map(countryName).join(", "), codes.length - NAMED];
  return more > 0 ? t("sells_in_more", { countries, count: more }) : t("sells_in", { countries });
}

// The shops and categories that may be meant where nothing is found: of did_you_mean, then of what is suggested.
async function nearest({ near, query, country }, { total_count: total, did_you_mean: meant, near: answered }, signal) {
  const none = { shops: [], categories: [] };
  if (total) return none;
  const suggested = near ?? answered ?? (query ? await suggest(query, country, signal).catch(() => none) : none);
  const shops = new Map([...meant, ...suggested.shops].map((shop) => [shop.id, shop]));
  return { shops: [...shops.values()], categories: suggested.categories };
}

// Without results: what may be meant, and other links.
function nothing(route, found, { shops, categories: near }) {
  const { query, country, categories } = route;
  if (found.total_count) {
    return make("p", { class: "plain" }, t("behind_last"), " ",
      make("a", { href: hrefOf({ ...route, offset: 0 }) }, t("first_page")));
  }
  const links = [
    ...near.map(({ slug, category: name }) => [{ categories: [slug], country }, name]),
    ...(within(route) || (query && categories.length) ? [[{ query, categories: [] }, t("without_filters")]] : []),
    [{ country }, t("browse_categories")],
  ];
  const broader = found.broader ?? [];
  return make("div", { class: "plain" },
    broader.map((wider, at) => broaderList(wider, at, route)),
    shops.length ? make("h2", { id: "near" }, t("did_you_mean")) : null,
    shops.length ? make("ul", { class: "shops", id: "did-you-mean", "aria-labelledby": "near" }, shops.map((shop) => shopRow(shop, route))) : null,
    make("p", { class: "links" }, links.map(([to, text]) => [make("a", { href: hrefOf(to) }, bdi(text)), " "]).flat()));
}

// A broader query with the number of its shops, and links to the search and to its first shops.
function broaderList({ query, left_out: left, total_count: total, results }, at, route) {
  const to = { ...route, query, offset: 0 };
  return make("section", { class: "broader", "aria-labelledby": `broader-${at}` },
    make("h2", { id: `broader-${at}` }, make("a", { href: hrefOf(to) }, bdi(query)), ` (${t("shops_counted", { count: total })})`),
    make("p", { class: "aside" }, phrase("without_words", { words: quoted(left) })),
    make("ul", { class: "shops" }, results.map((shop) => shopRow(shop, to))));
}

function paging(route, total) {
  // After the last shop, the previous page is the last one with shops.
  const end = Math.min(route.offset, Math.ceil(total / PAGE) * PAGE);
  const previous = end > 0 && make("a", {
    id: "previous", rel: "prev", href: hrefOf({ ...route, offset: Math.max(0, end - PAGE) }) }, t("previous"));
  const next = route.offset + PAGE < total && make("a", {
    id: "next", rel: "next", href: hrefOf({ ...route, offset: route.offset + PAGE }) }, t("next"));
  if (!previous && !next) return null;
  return make("nav", { class: "paging", "aria-label": t("pages") }, previous || null, next || null);
}
