// The offers of a shop. An offer's URL is looked up on click only, and is validated by the service.

import { call } from "./api.js";
import { OUTWARDS, readable } from "./domains.js";
import { bdi, make } from "./elements.js";
import { sentence } from "./failures.js";
import { firstFew } from "./sections.js";
import { count, dateTime, missing, money, named } from "./format.js";

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

// What cannot be ordered has no way to a checkout.
const isSoldOut = ({ availability }) => availability === "out_of_stock" || availability === "discontinued";

function offerRow(offer, signal, announce) {
  const box = make("div", { class: "box" });
  const button = make("button", {
    type: "button", class: "quiet", "aria-label": `To the checkout: ${offer.title}`, onclick: look }, "To the checkout");
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
      if (!tab) return box.replaceChildren(make("a", { href: url.href, ...OUTWARDS }, "Go to ", bdi(readable(url.hostname))));
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
    make("span", { class: "price" }, money(offer.price) ?? missing("price not stated")),
    make("span", { class: "small" },
      make("span", {}, AVAILABILITY[offer.availability] ?? missing("availability not stated")),
      make("span", {}, "Updated ", dateTime(offer.updated_at) ?? missing())),
    box);
}
