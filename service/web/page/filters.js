// The filters of the results. A number is shown only if it is exactly the number of shops after a click.

import { hrefOf } from "./address.js";
import { categoryCounts, categoryName } from "./categories.js";
import { bdi, isWide, make } from "./elements.js";
import { firstFew } from "./sections.js";
import { countryName } from "./format.js";

const FILTERS_SHOWN = 6;
const WORLDWIDE = "WORLDWIDE";

// anyCategory and anyCountry: the answers to the same query without that filter.
export function filters(route, anyCategory, anyCountry) {
  const isWhole = ({ truncated, category_truncated: cut }) => !truncated && !cut;
  const tally = ({ results }, keysOf, fits) => new Map([...new Set(results.flatMap(keysOf))]
    .map((key) => [key, results.filter((shop) => fits(shop, key)).length]));
  // If there are more shops than in one answer, only the sizes of whole categories are known.
  const known = !isWhole(anyCategory) && !route.query && !route.country && categoryCounts();
  const slugs = known || tally(anyCategory, ({ categories }) => categories, ({ categories }, slug) => categories.includes(slug));
  const codes = tally(anyCountry, ({ countries }) => countries ?? [],
    ({ countries }, code) => !countries || countries.includes(WORLDWIDE) || countries.includes(code));
  codes.delete(WORLDWIDE);
  const groups = [
    group("Category", route.category, slugs, known || isWhole(anyCategory), categoryName,
      (slug) => ({ ...route, view: slug ? "category" : "results", category: slug, offset: 0 })),
    group("Country", route.country, codes, isWhole(anyCountry), countryName, (code) => ({ ...route, country: code, offset: 0 })),
  ].filter(Boolean);
  if (!groups.length) return null;
  return make("details", { class: "filters", open: isWide() ? "" : undefined }, make("summary", {}, "Filter"), groups);
}

function group(title, chosen, counts, isCounted, nameOf, routeOf) {
  const keys = [...counts.keys()].filter((key) => key !== chosen).sort((one, other) => counts.get(other) - counts.get(one));
  if (!chosen && keys.length < 2) return null;
  const rows = keys.map((key) => make("li", {}, make("a", { href: hrefOf(routeOf(key)), "data-filter": key },
    bdi(nameOf(key)), isCounted ? make("span", { class: "aside" }, ` ${counts.get(key)}`) : null)));
  const clear = chosen ? make("a", { class: "chosen", href: hrefOf(routeOf("")), "aria-label": `Remove the filter ${nameOf(chosen)}` },
    bdi(nameOf(chosen)), make("span", { "aria-hidden": "true" }, "×")) : null;
  return make("div", {}, make("h2", {}, title), clear, firstFew(rows, FILTERS_SHOWN));
}
