// What the results can be narrowed by. A number stands only where it is the number of shops that a click shows.

import { hrefOf } from "./address.js";
import { categoryCounts, categoryName } from "./categories.js";
import { make, said } from "./elements.js";
import { firstFew } from "./sections.js";
import { countryName } from "./words.js";

const FILTERS_SHOWN = 6;
const WORLDWIDE = "WORLDWIDE";

// anyCategory and anyCountry: the answers to the question without that filter.
export function filters(place, anyCategory, anyCountry) {
  const isWhole = ({ truncated, category_truncated: cut }) => !truncated && !cut;
  const tally = ({ results }, keysOf, fits) => new Map([...new Set(results.flatMap(keysOf))]
    .map((key) => [key, results.filter((shop) => fits(shop, key)).length]));
  // Of more shops than one answer holds, only the numbers of whole categories are known.
  const known = !isWhole(anyCategory) && !place.query && !place.country && categoryCounts();
  const slugs = known || tally(anyCategory, ({ categories }) => categories, ({ categories }, slug) => categories.includes(slug));
  const codes = tally(anyCountry, ({ countries }) => countries ?? [],
    ({ countries }, code) => !countries || countries.includes(WORLDWIDE) || countries.includes(code));
  codes.delete(WORLDWIDE);
  const groups = [
    group("Category", place.category, slugs, known || isWhole(anyCategory), categoryName,
      (slug) => ({ ...place, view: slug ? "category" : "results", category: slug, offset: 0 })),
    group("Country", place.country, codes, isWhole(anyCountry), countryName, (code) => ({ ...place, country: code, offset: 0 })),
  ].filter(Boolean);
  if (!groups.length) return null;
  const open = matchMedia("(min-width: 56rem)").matches ? "" : undefined;
  return make("details", { class: "filters", open }, make("summary", {}, "Filter"), groups);
}

function group(title, chosen, counts, isCounted, nameOf, placeOf) {
  const keys = [...counts.keys()].filter((key) => key !== chosen).sort((one, other) => counts.get(other) - counts.get(one));
  if (!chosen && keys.length < 2) return null;
  const rows = keys.map((key) => make("li", {}, make("a", { href: hrefOf(placeOf(key)), "data-filter": key },
    said(nameOf(key)), isCounted ? make("span", { class: "aside" }, ` ${counts.get(key)}`) : null)));
  const clear = chosen ? make("a", { class: "chosen", href: hrefOf(placeOf("")), "aria-label": `Remove the filter ${nameOf(chosen)}` },
    said(nameOf(chosen)), make("span", { "aria-hidden": "true" }, "×")) : null;
  return make("div", {}, make("h2", {}, title), clear, firstFew(rows, FILTERS_SHOWN));
}
