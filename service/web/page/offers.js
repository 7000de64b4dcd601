// What a shop offers. Its address is looked up on request only, and checked by the service.

import { call } from "./api.js";
import { make, missing, said } from "./elements.js";
import { sentence } from "./failures.js";
import { folded } from "./sections.js";
import { count, moment, money } from "./words.js";

const KEPT = 5;
const AVAILABILITY = {
  in_stock: "in stock", out_of_stock: "out of stock", preorder: "can be ordered ahead", discontinued: "discontinued",
};

export async function offers(found, signal, announce) {
  if (!found.offers.length) {
    return ["missing", make("p", { class: "missing" }, "No offers are listed. That says nothing about the shop.")];
  }
  const rows = found.offers.map((offer) => row(offer, signal, announce));
  const rest = found.offers_total - found.offers.length;
  return ["ok", ...folded(rows, KEPT, "offers"),
    rest > 0 ? make("p", { class: "small" }, `The newest ${found.offers.length} of ${count(found.offers_total, "offer")}.`) : ""];
}

function row(offer, signal, announce) {
  const way = make("div", { class: "way" });
  const button = make("button", {
    type: "button", class: "quiet", "aria-label": `Checkout link: ${offer.title}`, onclick: look }, "Checkout link");
  way.append(button);

  async function look() {
    button.disabled = true;
    try {
      const { checkout_url: address } = await call("resolve_checkout_url", { offer_id: offer.offer_id }, signal);
      const url = new URL(address);
      if (url.protocol !== "https:") throw new TypeError("another protocol");
      const link = make("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" }, "Go to ", said(url.host));
      way.replaceChildren(link);
      link.focus();
    } catch (failure) {
      if (failure.kind === "aborted") return;
      const text = sentence(failure);
      const wait = (failure.wait ?? 0) * 1000;
      setTimeout(() => { button.disabled = false; }, wait);
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
