// Reports of wrong data: everybody sees where they are made, and a token makes them. One click, a fixed reason, no verdict.

import { tokenHint } from "./account.js";
import { call } from "./api.js";
import { make } from "./elements.js";
import { sentence } from "./failures.js";

const OF_CODES = [
  ["It was refused", "invalid"], ["Another discount than stated", "mismatch"],
  ["Not for what was in the cart", "item_restricted"], ["An order minimum was not stated", "min_order_missing"],
];
const OF_SHOPS = [
  ["The site can’t be reached", "unreachable"], ["The shop no longer exists", "no_longer_exists"],
  ["Wrong name or domain", "wrong_name_or_domain"], ["Wrong category", "wrong_category"], ["Out of date", "info_outdated"],
];
const OF_FACTS = [
  ["Wrong shipping cost", "shipping_cost"], ["Wrong return period", "return_period"],
  ["Wrong ways to pay", "payment_methods"], ["A source does not show it", "evidence_broken"],
];

export const reportCode = (coupon, signal, announce) => report(`the code ${coupon.code}`, OF_CODES.map(
  ([text, reason]) => [text, "report_code", { shop_domain: coupon.shop.id, code: coupon.code, reason }]), signal, announce);

export const reportShop = (shop, signal, announce) => report("this shop", [
  ...OF_SHOPS.map((one) => ["shop", ...one]), ...OF_FACTS.map((one) => ["fact", ...one]),
].map(([subject, text, reason]) => [text, "report_issue", { shop_domain: shop.id, subject_type: subject, reason }]), signal, announce);

function report(what, choices, signal, announce) {
  const outcome = make("p", { class: "small" });
  const buttons = choices.map(([name, tool, input]) => make("button", { type: "button", class: "quiet", "data-reason": input.reason, onclick: async () => {
    let text = "Reported. It will be checked again.";
    try {
      await call(tool, input, signal);
      for (const button of buttons) button.disabled = true;
    } catch (failure) {
      if (failure.kind === "aborted") return;
      text = sentence(failure);
    }
    outcome.textContent = text;
    announce(text);
  } }, name));
  return make("details", { class: "report" }, make("summary", { "aria-label": `Report a problem with ${what}` }, "Report a problem"),
    tokenHint("A report is made with a token."),
    make("div", { class: "choices" }, buttons), outcome);
}
