// The codes of a shop, each with the result of its checkout test. What is not known of a code is not shown.

import { bdi, make } from "./elements.js";
import { reportCode } from "./reports.js";
import { firstFew } from "./sections.js";
import { count, countryName, countryNames, day, joined, money, words } from "./format.js";

const CODES_SHOWN = 6;
// A longer code may have to be scrolled on a phone.
const SHORT_CODE = 20;

// found: the answer of list_coupons. The codes that are not for the chosen country come last.
export function coupons(found, country, signal, announce) {
  const balance = make("p", { class: "balance small" }, counts(found));
  if (!found.results.length) {
    return found.total_count
      ? ["missing", make("p", { class: "missing" }, "Codes are known, but none that may be shown."), balance]
      : ["missing", make("p", { class: "missing" }, "No codes are known. That says nothing about the shop.")];
  }
  const sorted = found.results.toSorted((one, other) => isElsewhere(one, country) - isElsewhere(other, country));
  return ["ok", ...firstFew(sorted.map((coupon) => couponRow(coupon, country, signal, announce)), CODES_SHOWN), balance];
}

// A sentence of the counts above zero.
function counts({ results, total_count: total, withheld }) {
  const rest = [
    [results.length, "may work", "may work"],
    [withheld.expired, "has expired", "have expired"],
    [withheld.verified_rejected, "was rejected in a real checkout", "were rejected in a real checkout"],
    [withheld.reserved_test_domain, "is for tests only", "are for tests only"],
    [withheld.policy, "is withheld by a display policy", "are withheld by a display policy"],
  ].filter(([number]) => number).map(([number, one, many]) => count(number, one, many));
  return `${count(total, "code")} known: ${rest.join(", ")}.`;
}

const isElsewhere = ({ countries }, country) =>
  Boolean(country && countries?.length) && !countries.includes("WORLDWIDE") && !countries.includes(country);

function discount(given) {
  switch (given?.kind) {
    case "percent": return `${given.value}% off`;
    case "amount": return `${money({ amount: given.value, currency: given.currency })} off`;
    case "free_shipping": return "Free shipping";
    case "other": return "Another advantage";
    default: return null;
  }
}

// The mood and the texts of what is known of a checkout with the code.
function testOf({ verificationStatus: status, lastVerifiedAt: at }) {
  if (status === "verified_applied") return ["good", "Worked in a real checkout", ...(at ? [", ", day(at)] : [])];
  return ["open", ...(at ? ["Tested without a clear result, ", day(at)] : ["Not tested yet: it may work or not"])];
}

// That there is no end is stated; a start or a condition that is not stated is left out.
function terms(tested, { validFrom: from, validUntil: until, minOrder, countries, source }) {
  return joined([
    tested,
    from && ["From ", day(from)],
    until ? ["Until ", day(until)] : ["No end date"],
    minOrder && ["Orders from ", money(minOrder)],
    countries?.length && ["Valid in ", countryNames(countries)],
    source && ["Found at ", words(source)],
  ].filter(Boolean).map((parts) => make("span", {}, parts)), " · ");
}

function couponRow(coupon, country, signal, announce) {
  const code = make("code", { tabindex: coupon.code.length > SHORT_CODE ? 0 : undefined }, coupon.code);
  const elsewhere = isElsewhere(coupon, country);
  const [mood, ...tested] = testOf(coupon);
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
    saving || title ? make("p", {}, saving ? make("span", { class: "name" }, saving) : "", saving && title ? " · " : "", title ? bdi(title) : "") : null,
    elsewhere ? make("p", { class: "status bad" }, `Not for ${countryName(country)}`) : make("p", { class: `status ${mood}` }, tested),
    make("details", { class: "more" }, make("summary", { "aria-label": `Details of the code ${coupon.code}` }, "Details"),
      make("p", { class: "terms" }, terms(elsewhere && tested, coupon))),
    asked,
    reporting);
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
