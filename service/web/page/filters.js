// The filters of the results, each with the number of shops that it would show by itself.

import { countryChoice } from "./account.js";
import { hrefOf, routeOf } from "./address.js";
import { categoryName, categorySlugs } from "./categories.js";
import { COUNTRY_CODES } from "./countries.js";
import { bdi, isWide, make } from "./elements.js";
import { marked } from "./letters.js";
import { countryName } from "./format.js";
import { numeral, t } from "./texts.js";

const FILTERS_SHOWN = 6;
// The most rows that a search inside of a filter shows.
const FOUND = 12;
// What the visitor opened stays open when the results are made again.
const opened = {};

// A second choice may be made before the first one is answered: the address has both.
export function filters(route, { facets: { category, country }, unsettled_count: unsettled }, go) {
  const { shipsTo } = route;
  const narrow = (change) => go(routeOf(hrefOf({ ...routeOf(), ...change, offset: 0 })), { still: true });
  const select = make("select", { id: "ships-to" }, make("option", { value: "" }, t("anywhere")));
  countryChoice(select, (chosen) => narrow({ shipsTo: chosen, unsettled: false }));
  select.value = shipsTo;
  return make("details", {
    class: "filters", open: opened.pane ?? isWide() ? "" : undefined, ontoggle: ({ target }) => { opened.pane = target.open; } },
    make("summary", {}, t("filter")),
    make("fieldset", {}, make("legend", {}, t("what_they_offer")),
      make("label", { for: select.id }, t("ships_to")), select,
      shipsTo ? box("unsettled", route.unsettled, (is) => narrow({ unsettled: is }), t("also_silent"), unsettled) : null,
      box("has-code", route.hasCode, (is) => narrow({ hasCode: is }), t("has_code"))),
    group("categories", [t("category"), t("find_category")], route.categories, category, categoryName, categorySlugs, narrow),
    group("countries", [t("sells_in_label"), t("find_country")], route.countries, country, countryName, () => COUNTRY_CODES, narrow));
}

function group(kind, [title, prompt], chosen, { values, missing, other_count: others }, nameOf, known, narrow) {
  const counts = new Map(values.map(({ value, count }) => [value, count]));
  // Where not all values are listed, this number may be unknown.
  const worldwide = counts.get("WORLDWIDE") ?? (others ? NaN : 0);
  counts.delete("WORLDWIDE");
  const all = [...new Set([...chosen, ...counts.keys()])];
  if (!chosen.length && all.length < 2) return null;
  const row = (value) => make("li", {}, box(`${kind}-${value}`, chosen.includes(value),
    (is) => narrow({ [kind]: [...routeOf()[kind].filter((one) => one !== value), ...(is ? [value] : [])] }),
    // No more can be chosen than find_shop takes.
    nameOf(value), counts.get(value), chosen.length > 19));
  const first = FILTERS_SHOWN + chosen.length;
  const isLong = all.length > first + 2 || others > 0;
  const list = make("ul", { class: "rows" });
  const more = make("button", { type: "button", class: "quiet", onclick: () => {
    opened[kind] = true;
    fill();
    list.children[first].querySelector("input").focus();
  } }, t("show_more", { count: all.length - first }));
  const find = make("input", { type: "search", "aria-label": prompt, placeholder: prompt, oninput: () => fill() });
  // A value that is not listed, as it has fewer shops, can be found by its name.
  function fill() {
    const typed = find.value.trim().split(/\s+/).filter(Boolean);
    const fits = (value) => typed.every((word) => marked(nameOf(value), word));
    const found = typed.length ? [...new Set([...all, ...(others ? known() : [])])].filter(fits).slice(0, FOUND)
      : isLong && !opened[kind] ? all.slice(0, first) : all;
    list.replaceChildren(...found.map(row));
    more.hidden = typed.length > 0 || found.length === all.length;
  }
  fill();
  return make("fieldset", {}, make("legend", {}, title), isLong ? find : null, list, more,
    make("p", { class: "small" },
      worldwide + missing > 0 ? `${t("always_with", { worldwide: numeral(worldwide), silent: numeral(missing) })} ` : "",
      others ? t("not_listed", { count: others }) : ""));
}

function box(id, checked, changed, name, number, full) {
  const input = make("input", { type: "checkbox", id, disabled: full && !checked ? "" : undefined, onchange: () => changed(input.checked) });
  input.checked = checked;
  return make("label", {}, input, bdi(name), number >= 0 ? make("span", { class: "aside" }, ` ${numeral(number)}`) : null);
}
