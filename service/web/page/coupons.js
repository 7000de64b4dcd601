// The codes of a shop, each with the result of its checkout test.

import { call } from "./api.js";
import { bdi, make } from "./elements.js";
import { reportCode } from "./reports.js";
import { firstFew } from "./sections.js";
import { countryNames, dateTime, day, facts, missing, money, stated } from "./format.js";

const CODES_SHOWN = 3;

export async function coupons(input, signal, announce) {
  const found = await call("list_coupons", input, signal);
  const balance = make("p", { class: "balance small" }, found.note);
  if (!found.results.length) {
    return found.total_count
      ? ["missing", make("p", { class: "missing" }, "Codes are known, but none that may be shown."), balance]
      : ["missing", make("p", { class: "missing" }, "No codes are known. That says nothing about the shop.")];
  }
  return ["ok", ...firstFew(found.results.map((coupon) => couponRow(coupon, signal, announce)), CODES_SHOWN), balance];
}

function discount(given) {
  switch (given?.kind) {
    case "percent": return `${given.value}% off`;
    case "amount": return `${money({ amount: given.value, currency: given.currency })} off`;
    case "free_shipping": return "Free shipping";
    case "other": return "Another advantage";
    default: return "Discount not stated";
  }
}

function testOf({ verificationStatus: status, lastVerifiedAt: at }) {
  if (status === "verified_applied") {
    return make("p", { class: "status good" }, "Worked in a real checkout, ", dateTime(at) ?? "time not stated");
  }
  return at
    ? make("p", { class: "status open" }, "Tested without a clear result, ", dateTime(at))
    : make("p", { class: "status open" }, "Not tested yet: it may work or not");
}

function validity({ validFrom: from, validUntil: until }) {
  const start = from ? ["from ", day(from), ", "] : ["start not stated, "];
  return make("span", {}, ...start, until ? make("span", {}, "until ", day(until)) : "no end");
}

function couponRow(coupon, signal, announce) {
  const code = make("code", {}, coupon.code);
  const copy = make("button", {
    type: "button", class: "quiet", "data-copy": coupon.code, "aria-label": `Copy the code ${coupon.code}` }, "Copy");
  copy.addEventListener("click", async () => {
    const done = await copied(coupon.code, code);
    copy.textContent = done ? "Copied" : "Copy by hand";
    announce(done ? `${coupon.code} is copied.` : "The browser does not let this page copy. The code is selected.");
    setTimeout(() => { copy.textContent = "Copy"; }, 2_000);
  });
  return make("li", { class: "coupon" },
    make("div", { class: "ticket" }, make("bdi", {}, code), copy),
    make("div", {},
      make("p", {}, make("span", { class: "name" }, discount(coupon.discount)), " · ",
        coupon.title ? bdi(coupon.title) : missing("no title stated")),
      testOf(coupon),
      facts(
        ["Valid", validity(coupon)],
        ["Order of at least", money(coupon.minOrder)],
        ["Valid in", countryNames(coupon.countries)],
        ["Found at", stated(coupon.source)]),
      reportCode(coupon, signal, announce)));
}

// Without a secure connection there is no clipboard; the code is selected instead.
async function copied(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}
