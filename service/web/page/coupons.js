// The codes of a shop, each with the result of its checkout test. What is not known of a code is not shown.

import { call } from "./api.js";
import { bdi, make } from "./elements.js";
import { reportCode } from "./reports.js";
import { firstFew } from "./sections.js";
import { countryNames, day, joined, money, named, words } from "./format.js";

const CODES_SHOWN = 6;

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
    default: return null;
  }
}

function testOf({ verificationStatus: status, lastVerifiedAt: at }) {
  if (status === "verified_applied") return make("p", { class: "status good" }, "Worked in a real checkout", ...(at ? [", ", day(at)] : []));
  return make("p", { class: "status open" }, ...(at ? ["Tested without a clear result, ", day(at)] : ["Not tested yet: it may work or not"]));
}

// That there is no end is stated; a start or a condition that is not stated is left out.
function terms({ validFrom: from, validUntil: until, minOrder, countries, source }) {
  return joined([
    from && ["From ", day(from)],
    until ? ["Until ", day(until)] : ["No end date"],
    minOrder && ["Orders from ", money(minOrder)],
    countries?.length && ["Valid in ", countryNames(countries)],
    source && ["Found at ", words(source)],
  ].filter(Boolean).map((parts) => make("span", {}, parts)), " · ");
}

function couponRow(coupon, signal, announce) {
  const code = make("code", {}, coupon.code);
  const reporting = reportCode(coupon, signal, announce);
  const copy = make("button", {
    type: "button", class: "quiet", "data-copy": coupon.code, "aria-label": `Copy the code ${coupon.code}` }, "Copy");
  const answer = (text, onclick) => make("button", { type: "button", class: "quiet", onclick }, text);
  const asked = make("p", { class: "small", hidden: "" }, "Did it work? ", answer("Yes", () => {
    asked.replaceChildren("Thank you. This answer is not kept.");
    copy.focus();
  }), " ", answer("No", () => {
    asked.hidden = true;
    reporting.open = true;
    reporting.firstChild.focus();
  }));
  copy.addEventListener("click", async () => {
    const done = await copied(coupon.code, code);
    copy.textContent = done ? "Copied ✓" : "Copy by hand";
    announce(done ? `${coupon.code} is copied.` : "The browser does not let this page copy. The code is selected.");
    asked.hidden = false;
    setTimeout(() => { copy.textContent = "Copy"; }, 2_000);
  });
  const [saving, title] = [discount(coupon.discount), coupon.title];
  return make("li", { class: "coupon" },
    make("div", { class: "ticket" }, make("bdi", {}, code), copy),
    make("div", {},
      saving ? make("p", { class: "name" }, saving) : null,
      title ? named(title) : null,
      testOf(coupon),
      make("p", { class: "terms" }, terms(coupon)),
      asked,
      reporting));
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
