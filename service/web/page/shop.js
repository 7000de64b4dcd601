// One shop: what is known of it, in sections that ask for themselves.

import { hrefOf } from "./address.js";
import { call } from "./api.js";
import { categoryIcon, categoryName, loadNames } from "./categories.js";
import { coupons } from "./coupons.js";
import { OUTWARDS, readable, siteOf } from "./domains.js";
import { bdi, isWide, make } from "./elements.js";
import { offers } from "./offers.js";
import { reportShop } from "./reports.js";
import { SOON, section } from "./sections.js";
import { shipping } from "./shipping.js";
import { trust } from "./trust.js";
import { badge, countryNames, facts, joined, named } from "./format.js";
import { t } from "./texts.js";

// No public site has such a domain.
const RESERVED = /\.(internal|test|invalid|example)$/;

// The element of a section.
const elementOf = ({ element }) => element;

export async function shop(route, signal, announce) {
  const input = { shop_domain: route.shop };
  let { country } = route;
  let codes;
  const couponPart = section("coupons", t("codes"), async () => {
    codes ??= await call("list_coupons", input, signal);
    return coupons(codes, country, signal, announce);
  });
  const shippingPart = section("shipping", t("shipping"), () => shipping(input, country, signal));
  const trustPart = section("trust", t("trust"), () => trust(input, signal));
  const filled = [couponPart, shippingPart, trustPart].map(({ fill }) => fill());
  const [found] = await Promise.all([call("get_shop", input, signal), loadNames(signal)]);
  const offerPart = section("offers", t("offers"), () => offers(found, signal, announce));
  filled.push(offerPart.fill());
  // Quick answers are shown together.
  await Promise.race([Promise.all(filled), new Promise((resolve) => { setTimeout(resolve, SOON); })]);
  return {
    kind: "shop",
    title: found.name,
    asOf: found.asOf,
    status: "",
    nodes: [
      head(found, country),
      // In two columns, the codes and the facts are about as high as the other two.
      make("div", { class: "columns" }, isWide()
        ? [[couponPart, trustPart], [shippingPart, offerPart]].map((parts) => make("div", {}, parts.map(elementOf)))
        : [couponPart, shippingPart, offerPart, trustPart].map(elementOf)),
      reportShop(found, signal, announce),
    ],
    // A change of the country affects only the order of the codes and the verdict on shipping.
    adapt(other) {
      if (other.view !== "shop" || other.shop !== route.shop) return false;
      country = other.country;
      couponPart.fill();
      shippingPart.fill();
      return true;
    },
    tokenChanged: trustPart.fill,
  };
}

function head(found, country) {
  const links = found.categories.map((slug) => make("a", { href: hrefOf({ categories: [slug], country }) },
    categoryIcon(slug), bdi(categoryName(slug))));
  const domain = readable(found.domain);
  const site = siteOf(found.domain);
  return make("div", { class: "shop-head" },
    badge(found),
    make("div", {},
      make("h1", { tabindex: "-1" }, named(found.name)),
      make("p", { class: "domain" }, bdi(domain)),
      RESERVED.test(found.domain) ? make("p", {}, t("invented")) : null),
    site ? make("a", { id: "visit", class: "button", href: site, ...OUTWARDS }, t("visit"), make("span", { "aria-hidden": "true" }, " ↗")) : null,
    facts(
      [t("also_known_as"), found.aliases.length ? joined(found.aliases.map(bdi)) : null],
      [t("categories"), joined(links)],
      [t("sells_in_label"), countryNames(found.countries)],
      ...(domain === found.domain ? [] : [[t("domain_ascii"), make("code", {}, found.domain)]]),
      [t("shop_id"), make("code", {}, found.id)]));
}
