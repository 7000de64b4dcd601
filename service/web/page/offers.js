// What a shop offers. An offer's address is looked up on request only, and checked by the service.

import { call } from "./api.js";
import { OUTWARDS, readable } from "./domains.js";
import { make, said } from "./elements.js";
import { sentence } from "./failures.js";
import { firstFew } from "./sections.js";
import { count, missing, moment, money } from "./words.js";

const OFFERS_SHOWN = 4;
const AVAILABILITY = {
  in_stock: "in stock", out_of_stock: "out of stock", preorder: "can be ordered ahead", discontinued: "discontinued",
};

export async function offers(found, signal, announce) {
  if (!found.offers.length) {
    return ["missing", make("p", { class: "missing" }, "No offers are listed. That says nothing about the shop.")];
  }
  const rows = found.offers.map((offer) => offerRow(offer, signal, announce));
  const rest = found.offers_total - found.offers.length;
  return ["ok", ...firstFew(rows, OFFERS_SHOWN),
    rest > 0 ? make("p", { class: "small" }, `The newest ${found.offers.length} of ${count(found.offers_total, "offer")}.`) : ""];
}

function offerRow(offer, signal, announce) {
  const way = make("div", { class: "way" });
  const button = make("button", {
    type: "button", class: "quiet", "aria-label": `To the checkout: ${offer.title}`, onclick: look }, "To the checkout");
  way.append(button);

  async function look() {
    // Opened in the click itself: after the answer, a browser may take it for a pop-up.
    const tab = open("about:blank", "_blank");
    button.disabled = true;
    try {
      const { checkout_url: address } = await call("resolve_checkout_url", { offer_id: offer.offer_id }, signal);
      const url = new URL(address);
      if (url.protocol !== "https:") throw new TypeError("another protocol");
      button.disabled = false;
      if (!tab) return way.replaceChildren(make("a", { href: url.href, ...OUTWARDS }, "Go to ", said(readable(url.hostname))));
      // The shop gets no handle on this page; a referrer goes to nobody by the policy of the page.
      tab.opener = null;
      tab.location.replace(url.href);
    } catch (failure) {
      tab?.close();
      if (failure.kind === "aborted") return;
      const text = sentence(failure);
      setTimeout(() => { button.disabled = false; }, (failure.wait ?? 0) * 1000);
      way.replaceChildren(make("p", { class: "small" }, text), ...(failure.status === 404 ? [] : [button]));
      announce(text);
    }
  }

  return make("li", { "data-offer": offer.offer_id },
    make("span", { class: "name" }, said(offer.title)),
    make("span", { class: "price" }, money(offer.price) ?? missing("price not stated")),
    make("span", { class: "small" },
      make("span", {}, AVAILABILITY[offer.availability] ?? missing("availability not stated")),
      make("span", {}, "Updated ", moment(offer.updated_at) ?? missing())),
    way);
}
