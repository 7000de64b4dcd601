// A shop's statements about shipping, and whether they cover the chosen country, and about returns.

import { call } from "./api.js";
import { bdi, make } from "./elements.js";
import { count, countryName, countryNames, dateTime, facts, money } from "./format.js";

const SOURCES = { policy_page: "the shop’s page on shipping", structured_data: "markup of the shop’s own pages" };

export async function shipping(input, country, signal) {
  const { shipping: found, returns } = await call("get_shop_policies", { ...input, country }, signal);
  const back = returns ? [make("h2", {}, "Returns"), facts(
    ["As stated", period(returns)],
    ...(returns.countries ? [["Apply in", countryNames(returns.countries)]] : []),
    ["Last checked", dateTime(returns.checked_at)])] : [];
  if (!found.collected) {
    return ["missing", make("p", { class: "missing" },
      "Nothing was gathered about this shop’s shipping; this is not a no."), ...back];
  }
  return ["ok", verdict(found.ships_to, country), facts(
    ["Ships to", countryNames(found.destinations)],
    ...(found.excluded ? [["Except", countryNames(found.excluded)]] : []),
    ["Is the list complete?", found.destinations_exhaustive ? "Yes, says the shop" : "The shop does not say so"],
    ["Delivery time", delivery(found.delivery_time)],
    ["Free shipping from", money(found.free_shipping_threshold)],
    ["Read from", SOURCES[found.source] ?? null],
    ["Last checked", dateTime(found.checked_at)]), ...back];
}

// How long a shop takes goods back, by its own statement.
function period({ category, days, counted_from: from }) {
  if (category === "not_permitted") return "The shop states that it takes nothing back";
  if (category === "unlimited") return "Without a limit of time";
  if (days === null) return "Within a time that is not stated in days";
  return count(days, "day") + (from ? ` from ${from === "delivered" ? "delivery" : "the order"}` : "");
}

function verdict(shipsTo, country) {
  if (!country) return make("p", { class: "verdict" }, "Choose a country above to see whether the shop’s statement covers it.");
  const name = countryName(country);
  const [mood, text] = {
    yes: ["good", `Yes, by the shop’s statement it ships to ${name}.`],
    no: ["bad", `No, by the shop’s statement it does not ship to ${name}.`],
  }[shipsTo] ?? ["open", `Unknown: the shop’s statement does not settle it for ${name}.`];
  return make("p", { class: `verdict ${mood}`, "data-verdict": shipsTo ?? "unknown" }, text);
}

function delivery(time) {
  if (!time) return null;
  const { min_days: least, max_days: most, as_stated: words } = time;
  const range = least !== null && most !== null && least !== most ? `${least} to ${count(most, "day")}`
    : most !== null ? (least === most ? count(most, "day") : `at most ${count(most, "day")}`)
    : least !== null ? `at least ${count(least, "day")}` : null;
  if (!range && !words) return null;
  return make("span", {}, range ?? "", range && words ? ", " : "", words ? make("q", {}, bdi(words)) : "");
}
