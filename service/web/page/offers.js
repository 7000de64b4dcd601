// The offers of a shop. An offer's URL is looked up on click only, and is validated by the service.

import { call } from "./api.js";
import { OUTWARDS, readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { sentence } from "./failures.js";
import { firstFew } from "./sections.js";
import { dateTime, missing, money, named } from "./format.js";
import { numeral, phrase, t } from "./texts.js";

const OFFERS_SHOWN = 4;
const AVAILABILITY = {
  in_stock: t("in_stock"), out_of_stock: t("out_of_stock"), preorder: t("preorder"), discontinued: t("discontinued"),
};

export async function offers(found, signal, announce) {
  if (!found.offers.length) {
    return ["missing", make("p", { class: "missing" }, t("offers_none"))];
  }
  const rows = found.offers.map((offer) => offerRow(offer, signal, announce));
  const rest = found.offers_total - found.offers.length;
  return ["ok", ...firstFew(rows, OFFERS_SHOWN),
    rest > 0 ? make("p", { class: "small" }, t("offers_newest", { shown: numeral(found.offers.length), count: found.offers_total })) : ""];
}

// What cannot be ordered has no way to a checkout.
const isSoldOut = ({ availability }) => availability === "out_of_stock" || availability === "discontinued";

function offerRow(offer, signal, announce) {
  const box = make("div", { class: "box" });
  const button = make("button", {
    type: "button", class: "quiet", "aria-label": t("to_checkout_of", { offer: offer.title }), onclick: look }, t("to_checkout"));
  if (!isSoldOut(offer)) box.append(button);

  async function look() {
    // Opened in the click handler: a browser may block it as a pop-up later.
    const tab = open("about:blank", "_blank");
    button.disabled = true;
    try {
      const { checkout_url: address } = await call("resolve_checkout_url", { offer_id: offer.offer_id }, signal);
      const url = new URL(address);
      if (url.protocol !== "https:") throw new TypeError("another protocol");
      button.disabled = false;
      if (!tab) return box.replaceChildren(make("a", { href: url.href, ...OUTWARDS }, phrase("go_to", { domain: bdi(readable(url.hostname)) })));
      // The shop gets no handle on this page; the policy of the page prevents a referrer.
      tab.opener = null;
      tab.location.replace(url.href);
    } catch (failure) {
      tab?.close();
      if (failure.kind === "aborted") return;
      const text = sentence(failure);
      setTimeout(() => { button.disabled = false; }, (failure.wait ?? 0) * 1000);
      box.replaceChildren(make("p", { class: "small" }, text), ...(failure.status === 404 ? [] : [button]));
      announce(text);
    }
  }

  return make("li", { "data-offer": offer.offer_id },
    make("div", { class: "name" }, named(offer.title)),
    make("span", { class: "price" }, money(offer.price) ?? missing(t("price_not_stated"))),
    make("span", { class: "small" },
      make("span", {}, AVAILABILITY[offer.availability] ?? missing(t("availability_not_stated"))),
      make("span", {}, phrase("updated", { time: dateTime(offer.updated_at) ?? missing() }))),
    box);
}
