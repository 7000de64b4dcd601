// The codes of a shop, each with the result of its checkout test. What is not known of a code is not shown.

import { bdi, make } from "./elements.js";
import { reportCode } from "./reports.js";
import { firstFew } from "./sections.js";
import { countryName, countryNames, day, joined, money, words } from "./format.js";
import { numeral, phrase, t } from "./texts.js";

const CODES_SHOWN = 6;
// A longer code may have to be scrolled on a phone.
const SHORT_CODE = 20;

// found: the answer of list_coupons. The codes that are not for the chosen country come last.
export function coupons(found, country, signal, announce) {
  const balance = make("p", { class: "balance small" }, counts(found));
  if (!found.results.length) {
    return found.total_count
      ? ["missing", make("p", { class: "missing" }, t("codes_hidden")), balance]
      : ["missing", make("p", { class: "missing" }, t("codes_none"))];
  }
  const sorted = found.results.toSorted((one, other) => isElsewhere(one, country) - isElsewhere(other, country));
  return ["ok", ...firstFew(sorted.map((coupon) => couponRow(coupon, country, signal, announce)), CODES_SHOWN), balance];
}

// A sentence of the counts above zero.
function counts({ results, total_count: total, withheld }) {
  const rest = [
    [results.length, "codes_may_work"],
    [withheld.expired, "codes_expired"],
    [withheld.verified_rejected, "codes_rejected"],
    [withheld.reserved_test_domain, "codes_reserved"],
    [withheld.policy, "codes_withheld"],
  ].filter(([count]) => count).map(([count, key]) => t(key, { count }));
  return t("codes_known", { count: total, parts: rest.join(", ") });
}

export const isElsewhere = ({ countries }, country) =>
  Boolean(country && countries?.length) && !countries.includes("WORLDWIDE") && !countries.includes(country);

function discount(given) {
  switch (given?.kind) {
    case "percent": return t("percent_off", { value: numeral(given.value) });
    case "amount": return t("amount_off", { amount: money({ amount: given.value, currency: given.currency }) });
    case "free_shipping": return t("free_shipping");
    case "other": return t("other_advantage");
    default: return null;
  }
}

// The mood and the texts of what is known of a checkout with the code.
function testOf({ verificationStatus: status, lastVerifiedAt: at }) {
  if (status === "verified_applied") return ["good", ...(at ? phrase("worked_on", { day: day(at) }) : [t("worked")])];
  return ["open", ...(at ? phrase("unclear_on", { day: day(at) }) : [t("untested")])];
}

// That there is no end is stated; a start or a condition that is not stated is left out.
function terms(tested, { validFrom: from, validUntil: until, minOrder, countries, source }) {
  return joined([
    tested,
    from && phrase("valid_from", { day: day(from) }),
    until ? phrase("valid_until", { day: day(until) }) : [t("no_end")],
    minOrder && phrase("orders_from", { amount: money(minOrder) }),
    countries?.length && phrase("valid_in", { countries: countryNames(countries) }),
    source && phrase("found_at", { source: words(source) }),
  ].filter(Boolean).map((parts) => make("span", {}, parts)), " · ");
}

function couponRow(coupon, country, signal, announce) {
  const code = make("code", { tabindex: coupon.code.length > SHORT_CODE ? 0 : undefined }, coupon.code);
  const elsewhere = isElsewhere(coupon, country);
  const [mood, ...tested] = testOf(coupon);
  const reporting = reportCode(coupon, signal, announce);
  const copy = make("button", {
    type: "button", class: "quiet", "data-copy": coupon.code, "aria-label": t("copy_code", { code: coupon.code }) }, t("copy"));
  const answer = (text, onclick) => make("button", { type: "button", class: "quiet", onclick }, text);
  const asked = make("p", { class: "small", hidden: "" }, t("did_it_work"), " ", answer(t("yes"), () => {
    asked.replaceChildren(t("thanks"));
    copy.focus();
  }), " ", answer(t("no"), () => {
    asked.hidden = true;
    reporting.open = true;
    reporting.firstChild.focus();
  }));
  copy.addEventListener("click", async () => {
    const done = await copied(coupon.code, code);
    copy.textContent = done ? `${t("copied")} ✓` : t("copy_by_hand");
    announce(done ? t("copied_code", { code: coupon.code }) : t("copy_refused"));
    asked.hidden = false;
    setTimeout(() => { copy.textContent = t("copy"); }, 2_000);
  });
  const [saving, title] = [discount(coupon.discount), coupon.title];
  return make("li", { class: "coupon" },
    make("div", { class: "ticket" }, make("bdi", {}, code), copy),
    saving || title ? make("p", {}, saving ? make("span", { class: "name" }, saving) : "", saving && title ? " · " : "", title ? bdi(title) : "") : null,
    elsewhere ? make("p", { class: "status bad" }, t("not_for", { country: countryName(country) })) : make("p", { class: `status ${mood}` }, tested),
    make("details", { class: "more" }, make("summary", { "aria-label": t("details_of_code", { code: coupon.code }) }, t("details")),
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
