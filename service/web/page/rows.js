// What the rows of a list say of each shop besides the answer of find_shop: a code that worked, shipping, returns.

import { call } from "./api.js";
import { isElsewhere } from "./coupons.js";
import { make } from "./elements.js";
import { countryName, joined } from "./format.js";
import { t } from "./texts.js";

// The facts by the shops' ids, as `views.py` makes them; an answer that fails adds none.
export async function rowFacts(shops, country, signal) {
  const shop_domains = shops.map(({ id }) => id);
  const asked = (tool, more) => call(tool, { shop_domains, ...more }, signal).then((found) => found.shops, () => []);
  const [codes, policies] = await Promise.all([asked("list_coupons"), asked("get_shop_policies", { country })]);
  const facts = Object.fromEntries(shop_domains.map((id) => [id, {}]));
  for (const { shop_domain: id, coupons } of codes) {
    facts[id].worked = coupons?.results.some((coupon) =>
      coupon.verificationStatus === "verified_applied" && !isElsewhere(coupon, country));
  }
  for (const { shop_domain: id, policies: stated } of policies) {
    Object.assign(facts[id], stated && { ships_to: stated.shipping.ships_to, returns: stated.returns });
  }
  return facts;
}

// The facts of one shop as the content of its row; what is not known is left out.
export function factNodes({ worked, ships_to: ships, returns }, country) {
  const name = country && countryName(country);
  return joined([
    worked && ["good", t("code_worked")],
    ships === "yes" && ["good", t("ships_to_country", { country: name })],
    ships === "no" && ["bad", t("ships_not_to", { country: name })],
    returns && ["", returnPeriod(returns)],
  ].filter((fact) => fact?.[1]).map(([mood, text]) => make("span", { class: mood }, text)), " ");
}

function returnPeriod({ category, days }) {
  if (category === "not_permitted") return t("no_returns");
  if (category === "unlimited") return t("returns_any_time");
  return days === null ? "" : t("returns_in_days", { count: days });
}
