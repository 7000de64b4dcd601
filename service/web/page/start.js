// The start view: what the directory is, and the categories to browse.

import { hrefOf } from "./address.js";
import { categoryIcon, categoryList } from "./categories.js";
import { bdi, make } from "./elements.js";
import { count } from "./format.js";

// The categories that a small screen shows first; a large one shows all.
const FIRST = 8;

export async function start(route, signal) {
  const { results, total_count: total, asOf } = await categoryList(signal);
  const { country } = route;
  const links = results.map((found) => make("li", {},
    make("a", { href: hrefOf({ categories: [found.slug], country }), "data-slug": found.slug },
      categoryIcon(found.slug), bdi(found.category), make("span", { class: "aside" }, count(found.count, "shop")))));
  const tiles = make("ul", { class: "tiles" }, links);
  const more = make("button", { type: "button", class: "quiet more", onclick: () => {
    tiles.classList.add("all");
    links[FIRST].querySelector("a").focus();
    more.remove();
  } }, `All ${total} categories`);
  return {
    kind: "start",
    title: "",
    asOf,
    status: "",
    nodes: [
      make("h1", { tabindex: "-1" }, "Know a shop before you buy"),
      make("p", { class: "lead" }, "Offers, codes that were tried at a real checkout, where a shop ships, and what was " +
        "measured of its site: each with its source and its time."),
      make("div", { class: "heading" },
        make("h2", {}, "Browse by category"),
        make("a", { href: hrefOf({ query: "", categories: [], country }) }, "All shops")),
      total ? tiles : make("p", { class: "plain" }, "The directory holds no shops yet."),
      total > FIRST ? more : null,
    ],
  };
}
