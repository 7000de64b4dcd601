// Formats the values of answers for people: countries, money, times and gaps.

import { bdi, make, wholeOf } from "./elements.js";
import { LANGUAGE, MARKET_NAMES } from "./language.js";
import { LOCALE, t } from "./texts.js";

// What the operator set: the name and the tagline of the site, whether logos may be loaded, how a token is got.
export const SITE = JSON.parse(document.getElementById("site").textContent);

const COUNTRIES = new Intl.DisplayNames(LANGUAGE, { type: "region", fallback: "code" });
const DAY = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeZone: "UTC" });
const DATE_TIME = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
const AGO = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
const SPANS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];

export const countryName = (code) => MARKET_NAMES[code] ?? (/^[A-Z]{2}$/.test(code) ? COUNTRIES.of(code) : code);

export const countryNames = (codes) => (codes?.length ? codes.map(countryName).join(", ") : null);

export function money(price) {
  if (!price) return null;
  const style = { style: "currency", currency: price.currency, maximumFractionDigits: 8, useGrouping: "always" };
  // The amount stays a string, so that no digit is lost.
  try { return new Intl.NumberFormat(LOCALE, style).format(price.amount); }
  catch { return `${price.amount} ${price.currency}`; }
}

export function day(time) {
  const at = Date.parse(time);
  return Number.isNaN(at) ? bdi(time) : make("time", { datetime: time }, DAY.format(at));
}

// A time, and how long ago it is.
export function dateTime(time) {
  if (!time) return null;
  const at = Date.parse(time);
  if (Number.isNaN(at)) return bdi(time);
  const passed = (at - Date.now()) / 1000;
  const [unit, span] = SPANS.find(([, length]) => Math.abs(passed) >= 2 * length) ?? ["minute", 60];
  const ago = AGO.format(Math.trunc(passed / span), unit).replaceAll(" ", "\u00a0");
  return make("time", { datetime: time }, `${DATE_TIME.format(at)} UTC (${ago})`);
}

export const missing = (text = t("not_stated")) => make("span", { class: "missing" }, text);

// A code word of a provider, such as checkout_page.
export const words = (code) => bdi(String(code).replaceAll("_", " "));

// Rows of a name and a value; null is shown as missing.
export function facts(...rows) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of rows) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value ?? missing())));
  return list;
}

export function joined(parts, between = ", ") {
  return parts.flatMap((part, at) => (at ? [between, part] : [part]));
}

// A name of any length; the whole is its title.
export const named = (text, shown = bdi(text)) => make("span", { class: "clamp", title: wholeOf(text) }, shown);

// The image of a shop, by which rows of a list are recognised; without one, a square with the first letter of its name.
export function badge({ name, id, logo_url: logo }) {
  const sign = [...new Intl.Segmenter().segment(name.replace(/[\p{C}\p{Z}\p{P}\p{S}]/gu, "") || "·")][0].segment;
  let tone = 0;
  for (const letter of id) tone = (tone * 31 + letter.codePointAt(0)) % 4;
  const tile = make("span", { class: `badge tone-${tone}`, "aria-hidden": "true" }, sign.toLocaleUpperCase("en"));
  if (SITE.logos && logo) {
    tile.append(make("img", {
      alt: "", loading: "lazy", referrerpolicy: "no-referrer", onload: ({ target }) => target.classList.add("seen"),
      onerror: ({ target }) => target.remove(), src: logo }));
  }
  return tile;
}
