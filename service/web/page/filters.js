// The filters of the results, each with the number of shops that it would show by itself.

import { countryChoice } from "./account.js";
import { hrefOf, routeOf } from "./address.js";
import { categoryName } from "./categories.js";
import { bdi, isWide, make } from "./elements.js";
import { countryName, numeral } from "./format.js";
import { firstFew } from "./sections.js";

const FILTERS_SHOWN = 6;
// What the visitor opened stays open when the results are made again.
const opened = { categories: {}, countries: {} };

// A second choice may be made before the first one is answered: the address has both.
export function filters(route, { facets: { category, country }, unsettled_count: unsettled }, go) {
  const { shipsTo } = route;
  const narrow = (change) => go(routeOf(hrefOf({ ...routeOf(), ...change, offset: 0 })), { still: true });
  const select = make("select", { id: "ships-to" }, make("option", { value: "" }, "Anywhere"));
  countryChoice(select, (chosen) => narrow({ shipsTo: chosen, unsettled: false }));
  select.value = shipsTo;
  return make("details", {
    class: "filters", open: opened.pane ?? isWide() ? "" : undefined, ontoggle: ({ target }) => { opened.pane = target.open; } },
    make("summary", {}, "Filter"),
    make("fieldset", {}, make("legend", {}, "What they offer"),
      make("label", { for: select.id }, "Ships to"), select,
      shipsTo ? box("unsettled", route.unsettled, (is) => narrow({ unsettled: is }), "Also those that do not say", unsettled) : null,
      box("has-code", route.hasCode, (is) => narrow({ hasCode: is }), "Has a code now")),
    group("categories", "Category", route.categories, category, categoryName, narrow),
    group("countries", "Sells in", route.countries, country, countryName, narrow));
}

function group(kind, title, chosen, { values, missing, other_count: others }, nameOf, narrow) {
  const counts = new Map(values.map(({ value, count }) => [value, count]));
  // Where not all values are listed, this number may be unknown.
  const worldwide = counts.get("WORLDWIDE") ?? (others ? NaN : 0);
  counts.delete("WORLDWIDE");
  const all = [...new Set([...chosen, ...counts.keys()])];
  if (!chosen.length && all.length < 2) return null;
  // No more can be chosen than find_shop takes.
  const rows = all.map((value) => make("li", {}, box(`${kind}-${value}`, chosen.includes(value),
    (is) => narrow({ [kind]: [...routeOf()[kind].filter((one) => one !== value), ...(is ? [value] : [])] }), nameOf(value), counts.get(value), chosen.length > 19)));
  return make("fieldset", {}, make("legend", {}, title), firstFew(rows, FILTERS_SHOWN + chosen.length, opened[kind]),
    make("p", { class: "small" },
      worldwide + missing > 0 ? `Always with ${numeral(worldwide)} that sell worldwide and ${numeral(missing)} that do not say. ` : "",
      others ? `${numeral(others)} more not listed.` : ""));
}

function box(id, checked, changed, name, number, full) {
  const input = make("input", { type: "checkbox", id, disabled: full && !checked ? "" : undefined, onchange: () => changed(input.checked) });
  input.checked = checked;
  return make("label", {}, input, bdi(name), number >= 0 ? make("span", { class: "aside" }, ` ${numeral(number)}`) : null);
}
