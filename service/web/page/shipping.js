// A shop's statements about shipping, and whether they cover the chosen country, and about returns.

import { call } from "./api.js";
import { bdi, make } from "./elements.js";
import { countryName, countryNames, dateTime, facts, money } from "./format.js";
import { numeral, t } from "./texts.js";

const SOURCES = { policy_page: t("source_policy_page"), structured_data: t("source_structured_data") };

export async function shipping(input, country, signal) {
  const { shipping: found, returns } = await call("get_shop_policies", { ...input, country }, signal);
  const back = returns ? [make("h2", {}, t("returns")), facts(
    [t("as_stated"), period(returns)],
    ...(returns.countries ? [[t("returns_apply_in"), countryNames(returns.countries)]] : []),
    [t("last_checked"), dateTime(returns.checked_at)])] : [];
  if (!found.collected) {
    return ["missing", make("p", { class: "missing" },
      t("shipping_unknown")), ...back];
  }
  return ["ok", verdict(found.ships_to, country), facts(
    [t("ships_to"), countryNames(found.destinations)],
    ...(found.excluded ? [[t("except"), countryNames(found.excluded)]] : []),
    [t("list_complete"), found.destinations_exhaustive ? t("complete_yes") : t("complete_silent")],
    [t("delivery_time"), delivery(found.delivery_time)],
    [t("free_shipping_from"), money(found.free_shipping_threshold)],
    [t("read_from"), SOURCES[found.source] ?? null],
    [t("last_checked"), dateTime(found.checked_at)]), ...back];
}

// How long a shop takes goods back, by its own statement.
function period({ category, days, counted_from: from }) {
  if (category === "not_permitted") return t("returns_not_permitted");
  if (category === "unlimited") return t("returns_unlimited");
  if (days === null) return t("returns_without_days");
  return t(!from ? "days" : from === "delivered" ? "returns_from_delivery" : "returns_from_order", { count: days });
}

function verdict(shipsTo, country) {
  if (!country) return make("p", { class: "verdict" }, t("verdict_choose"));
  const [mood, key] = {
    yes: ["good", "verdict_yes"], no: ["bad", "verdict_no"],
  }[shipsTo] ?? ["open", "verdict_open"];
  return make("p", { class: `verdict ${mood}`, "data-verdict": shipsTo ?? "unknown" }, t(key, { country: countryName(country) }));
}

function delivery(time) {
  if (!time) return null;
  const { min_days: least, max_days: most, as_stated: words } = time;
  const range = most === null ? least !== null && t("days_at_least", { count: least })
    : least === null ? t("days_at_most", { count: most })
    : least === most ? t("days", { count: most }) : t("days_range", { least: numeral(least), count: most });
  if (!range && !words) return null;
  return make("span", {}, range || "", range && words ? ", " : "", words ? make("q", {}, bdi(words)) : "");
}
