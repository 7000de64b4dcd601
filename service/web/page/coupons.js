// The codes of a shop, each with what a checkout has shown of it.

import { call } from "./api.js";
import { facts, make, missing, said } from "./elements.js";
import { folded } from "./sections.js";
import { count, countryNames, day, moment, money, told } from "./words.js";

const KEPT = 3;

export async function coupons(asked, signal, announce) {
  const { results, total_count: total, note } = await call("list_coupons", asked, signal);
  // The note says how many were found, how many are withheld, and why.
  const balance = make("p", { class: "balance small" }, said(note));
  if (!results.length) {
    const text = total ? "Codes are known, but none that may be shown." : "No codes are known. That says nothing about the shop.";
    return ["missing", make("p", { class: "missing" }, text), balance];
  }
  return ["ok", ...folded(results.map((coupon) => row(coupon, announce)), KEPT, "codes"), balance];
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

function status({ verificationStatus: status, lastVerifiedAt: at }) {
  if (status === "verified_applied") {
    return make("p", { class: "status good" }, "Worked in a real checkout, ", moment(at) ?? "time not stated");
  }
  return at
    ? make("p", { class: "status open" }, "Tested without a clear result, ", moment(at))
    : make("p", { class: "status open" }, "Not tested yet: it may work or not");
}

function validity({ validFrom: from, validUntil: until }) {
  const start = from ? ["from ", day(from), ", "] : ["start not stated, "];
  return make("span", {}, ...start, until ? make("span", {}, "until ", day(until)) : "no end");
}

function row(coupon, announce) {
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
        coupon.title ? said(coupon.title) : missing("no title stated")),
      status(coupon),
      facts(
        ["Valid", validity(coupon)],
        ["Order of at least", money(coupon.minOrder)],
        ["Valid in", countryNames(coupon.countries)],
        ["Found at", told(coupon.source)])));
}

// Without a secure connection there is no clipboard to write to; then the code is selected at least.
async function copied(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}
