// The shops that fit a question or belong to a category, page by page.

import { hrefOf, shopPlace } from "./address.js";
import { call } from "./api.js";
import { categoryName, learnNames } from "./categories.js";
import { badge, joined, make, missing, said } from "./elements.js";
import { count, countryName } from "./words.js";

const PAGE = 25;
const NAMED = 3;

export async function listing(place, signal) {
  const input = { query: place.query, limit: PAGE, offset: place.offset, category: place.category, country: place.country };
  const [found] = await Promise.all([call("find_shop", input, signal), learnNames(signal)]);
  const heading = title(place);
  return {
    kind: place.view,
    title: heading.text,
    asOf: found.asOf,
    told: `${count(found.total_count, "shop")} found.`,
    nodes: [
      make("h1", { tabindex: "-1" }, heading.nodes),
      found.total_count ? make("p", { class: "lead" }, extent(place, found)) : null,
      notice(found),
      meant(found.did_you_mean, place.country),
      found.results.length
        ? make("ul", { class: "shops" }, found.results.map((shop) => row(shop, place.country)))
        : nothing(place, found),
      paging(place, found),
    ],
  };
}

function title({ query, category }) {
  const name = category && categoryName(category);
  if (!query.trim()) return category ? { text: name, nodes: [said(name)] } : { text: "All shops", nodes: ["All shops"] };
  return { text: category ? `${query} in ${name}` : query, nodes: ["Shops for “", said(query), "”", ...(category ? [" in ", said(name)] : [])] };
}

const within = ({ country }) =>
  (country ? ` that sell in ${countryName(country)}, sell worldwide, or do not state where they sell` : "");

function extent(place, { results, total_count: total }) {
  const all = count(total, "shop") + within(place);
  if (results.length === 0 || total <= results.length) return all;
  return `${place.offset + 1} to ${place.offset + results.length} of ${all}`;
}

function notice({ results, ignored_terms: ignored, category_truncated: cut }) {
  const said_so = [];
  if (ignored.length) {
    said_so.push(make("p", {}, "Left out, as no shop fits: ", joined(ignored.map((word) => make("q", {}, said(word)))),
      results.length ? ". What is shown answers a narrower question than yours." : "."));
  }
  if (cut) {
    said_so.push(make("p", {}, "A word fits more categories than were searched: what is shown is a part of what fits."));
  }
  return said_so.length ? make("div", { id: "notice" }, said_so) : null;
}

function meant(shops, country) {
  if (!shops.length) return null;
  const links = shops.map((shop) =>
    make("a", { href: hrefOf(shopPlace(shop, country)) }, said(shop.name), " (", said(shop.domain), ")"));
  return make("p", { id: "did-you-mean" }, "Did you mean ", joined(links, " or "), "?");
}

function row(shop, country) {
  const markets = shop.countries?.map(countryName);
  const more = markets?.length > NAMED ? ` and ${count(markets.length - NAMED, "more", "more")}` : "";
  return make("li", { "data-shop": shop.id },
    badge(shop.name, shop.id),
    make("div", {},
      make("a", { href: hrefOf(shopPlace(shop, country)) }, said(shop.name)),
      make("span", { class: "aside" }, said(shop.domain))),
    make("div", { class: "small" },
      make("span", {}, joined(shop.categories.map((slug) => said(categoryName(slug))))),
      make("span", {}, shop.countries?.includes("WORLDWIDE") ? "Sells worldwide"
        : markets?.length ? `Sells in ${markets.slice(0, NAMED).join(", ")}${more}` : missing("markets not stated")),
      make("span", {}, shop.offers_total ? count(shop.offers_total, "offer") : missing("no offers listed"))));
}

function nothing(place, { total_count: total }) {
  if (total) {
    return make("p", { class: "plain" }, "This page lies behind the last shop. ",
      make("a", { href: hrefOf({ ...place, offset: 0 }) }, "To the first page"));
  }
  return place.country
    ? make("p", { class: "plain" }, `No shop fits among those${within(place)}. `,
      make("a", { href: hrefOf({ ...place, country: "", offset: 0 }) }, "Look in all countries"))
    : make("p", { class: "plain" }, "No shop in the directory fits. ",
      make("a", { href: hrefOf({ view: "start" }) }, "Browse the categories"));
}

function paging(place, { results, truncated, total_count: total }) {
  // From behind the last shop, the page before is the last one.
  const end = Math.min(place.offset, Math.ceil(total / PAGE) * PAGE);
  const previous = end > 0 && make("a", {
    id: "previous", rel: "prev", href: hrefOf({ ...place, offset: Math.max(0, end - PAGE) }) }, "Previous");
  const next = truncated && make("a", {
    id: "next", rel: "next", href: hrefOf({ ...place, offset: place.offset + results.length }) }, "Next");
  if (!previous && !next) return null;
  return make("nav", { class: "paging", "aria-label": "Pages" }, previous || null, next || null);
}
