// A shop's statement about shipping, and whether it covers the chosen country.

import { call } from "./api.js";
import { bdi, make } from "./elements.js";
import { count, countryName, countryNames, dateTime, facts, money } from "./format.js";

const SOURCES = { policy_page: "the shop’s page on shipping", structured_data: "markup of the shop’s own pages" };

export async function shipping(input, country, signal) {
  const found = await call("get_shipping_policy", { ...input, country }, signal);
  if (!found.collected) {
    return ["missing", make("p", { class: "missing" },
      "Nothing was gathered about this shop’s shipping; this is not a no.")];
  }
  return ["ok", verdict(found.ships_to, country), facts(
    ["Ships to", countryNames(found.destinations)],
    ["Is the list complete?", found.destinations_exhaustive ? "Yes, says the shop" : "The shop does not say so"],
    ["Delivery time", delivery(found.delivery_time)],
    ["Free shipping from", money(found.free_shipping_threshold)],
    ["Read from", SOURCES[found.source] ?? null],
    ["Last checked", dateTime(found.checked_at)])];
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
