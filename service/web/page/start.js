// The start view on one screen: searches to try, the largest categories and the most popular shops.

import { hrefOf, shopRoute } from "./address.js";
import { call } from "./api.js";
import { categoryIcon, categoryList, categoryName } from "./categories.js";
import { readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { SITE, badge, countryName, joined, named } from "./format.js";
import { LOCALE, phrase, t } from "./texts.js";

const CATEGORIES = 16;
const SHOPS = 8;
// The longest example, in characters.
const SHORT = 30;

// What is known without any answer.
export const intro = () => [
  make("h1", { tabindex: "-1" }, SITE.tagline),
  make("p", { class: "lead" }, t("start_lead")),
];

export async function start({ country }, signal) {
  const [{ results: categories, total_count: total, asOf }, { results: shops }] = await Promise.all([
    categoryList(signal), call("find_shop", { query: "", country, limit: SHOPS }, signal)]);
  const icons = new Set();
  const tiles = categories.map(({ slug, category, count: number }) =>
    tile({ categories: [slug], country }, categoryIcon(slug, icons), category, t("shops_counted", { count: number }), { "data-slug": slug }));
  const rest = tiles.slice(CATEGORIES);
  for (const one of rest) one.hidden = true;
  const all = make("button", { type: "button", class: "quiet", onclick: () => {
    for (const one of rest) one.hidden = false;
    rest[0].querySelector("a").focus();
    all.remove();
  } }, t("all_categories", { count: total }));
  return {
    kind: "start",
    title: "",
    asOf,
    status: "",
    nodes: [
      ...intro(),
      total ? make("p", { class: "links" }, phrase("try", { examples: examples(categories, shops, country) })) : null,
      heading(t("categories"), rest.length ? all : ""),
      total ? make("ul", { class: "tiles" }, tiles) : make("p", { class: "plain" }, t("no_shops_yet")),
      heading(t("popular_shops"), make("a", { href: hrefOf({ query: "", categories: [], country }) }, t("all_shops"))),
      make("ul", { class: "tiles" }, shops.map((shop) =>
        tile(shopRoute(shop, country), badge(shop), shop.name, readable(shop.domain), { "data-shop": shop.id }))),
    ],
  };
}

const heading = (text, aside) => make("div", { class: "heading" }, make("h2", {}, text), aside);

function tile(to, face, name, aside, data) {
  return make("li", {}, make("a", { href: hrefOf(to), ...data }, face, named(name), make("span", { class: "aside" }, aside)));
}

// Searches as a person types them, each of which finds a shop: one by its name, one by a category, one by category and
// market. Names of one word are preferred.
function examples(categories, shops, country) {
  const kind = ({ category }) => categoryName(category);
  const sold = shops.filter(({ countries }) => /^[A-Z]{2}$/.test(countries?.[0]));
  const texts = [
    shops.map(({ name }) => name),
    categories.map(({ category }) => category),
    sold.reverse().map((shop) => `${kind(shop)} ${countryName(shop.countries[0])}`),
  ].map((some, at) => {
    const short = some.filter((text) => text.length <= SHORT);
    return short.find((text) => (at < 2 ? /^[\p{L}\p{M}]+$/u : /^[\p{L}\p{M}]+ [\p{L}\p{M}]+$/u).test(text)) ?? short[0];
  }).filter(Boolean).map((text) => text.toLocaleLowerCase(LOCALE));
  return joined([...new Set(texts)].map((text) =>
    make("a", { class: "example", href: hrefOf({ query: text, categories: [], country }) }, bdi(text))), " ");
}
