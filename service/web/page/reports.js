// Reports of wrong data: everybody sees where they are made, and a token makes them. One click, a fixed reason, no verdict.

import { tokenHint } from "./account.js";
import { call } from "./api.js";
import { make } from "./elements.js";
import { sentence } from "./failures.js";
import { t } from "./texts.js";

const OF_CODES = [
  [t("reason_invalid"), "invalid"], [t("reason_mismatch"), "mismatch"],
  [t("reason_item_restricted"), "item_restricted"], [t("reason_min_order_missing"), "min_order_missing"],
];
const OF_SHOPS = [
  [t("reason_unreachable"), "unreachable"], [t("reason_no_longer_exists"), "no_longer_exists"],
  [t("reason_wrong_name_or_domain"), "wrong_name_or_domain"], [t("reason_wrong_category"), "wrong_category"], [t("reason_info_outdated"), "info_outdated"],
];
const OF_FACTS = [
  [t("reason_shipping_cost"), "shipping_cost"], [t("reason_return_period"), "return_period"],
  [t("reason_payment_methods"), "payment_methods"], [t("reason_evidence_broken"), "evidence_broken"],
];

export const reportCode = (coupon, signal, announce) => report(t("report_the_code", { code: coupon.code }), OF_CODES.map(
  ([text, reason]) => [text, "report_code", { shop_domain: coupon.shop.id, code: coupon.code, reason }]), signal, announce);

export const reportShop = (shop, signal, announce) => report(t("report_the_shop"), [
  ...OF_SHOPS.map((one) => ["shop", ...one]), ...OF_FACTS.map((one) => ["fact", ...one]),
].map(([subject, text, reason]) => [text, "report_issue", { shop_domain: shop.id, subject_type: subject, reason }]), signal, announce);

function report(what, choices, signal, announce) {
  const outcome = make("p", { class: "small" });
  const buttons = choices.map(([name, tool, input]) => make("button", { type: "button", class: "quiet", "data-reason": input.reason, onclick: async () => {
    let text = t("reported");
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
  return make("details", { class: "report" }, make("summary", { "aria-label": t("report_with", { subject: what }) }, t("report")),
    tokenHint(t("report_token")),
    make("div", { class: "choices" }, buttons), outcome);
}
