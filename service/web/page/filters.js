// What the results can be narrowed by. A number stands only where it is the number of shops that a click shows.

import { hrefOf } from "./address.js";
import { categoryCounts, categoryName } from "./categories.js";
import { make, said } from "./elements.js";
import { firstFew } from "./sections.js";
import { countryName } from "./words.js";

const FILTERS_SHOWN = 6;
const WORLDWIDE = "WORLDWIDE";

const sells = ({ countries }, code) => !code || !countries || countries.includes(WORLDWIDE) || countries.includes(code);
const carries = ({ categories }, slug) => !slug || categories.includes(slug);

// all: the answer to the words alone, without filters.
export function filters(place, { results, truncated, category_truncated: cut }) {
  const { query, country, category } = place;
  const counted = (keys, fits) => new Map([...new Set(keys)].map((key) => [key, results.filter((shop) => fits(shop, key)).length]));
  const slugs = counted(results.filter((shop) => sells(shop, country)).flatMap((shop) => shop.categories),
    (shop, slug) => sells(shop, country) && carries(shop, slug));
  const codes = counted(results.filter((shop) => carries(shop, category)).flatMap((shop) => shop.countries ?? []),
    (shop, code) => sells(shop, code) && carries(shop, category));
  codes.delete(WORLDWIDE);
  const whole = !truncated && !cut;
  // Of more shops than one answer holds, only the numbers of whole categories are known.
  const known = !whole && !query && !country && categoryCounts();
  const groups = [
    group("Category", category, known || slugs, whole || known, categoryName,
      (slug) => ({ ...place, view: slug ? "category" : "results", category: slug, offset: 0 })),
    group("Country", country, codes, whole, countryName, (code) => ({ ...place, country: code, offset: 0 })),
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
