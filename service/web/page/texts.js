// The texts of the page in its language: the server bundles those that this script names.

import { LANGUAGE, TEXTS } from "./language.js";

// How numbers and days are written.
export const LOCALE = LANGUAGE === "en" ? "en-GB" : LANGUAGE;
const PLURALS = new Intl.PluralRules(LOCALE);
// As the server does, which groups four digits as well.
const NUMBER = new Intl.NumberFormat(LOCALE, { useGrouping: "always" });

export const numeral = (number) => NUMBER.format(number);

// The parts of a text, in which values, texts or nodes, stand for {names}; a `count` decides on the form of the text.
export function phrase(key, { count, ...values } = {}) {
  const text = count === undefined ? TEXTS[key] : TEXTS[key][PLURALS.select(count)];
  const given = count === undefined ? values : { ...values, count: numeral(count) };
  return text.split(/\{(\w+)\}/).flatMap((part, at) => (at % 2 ? given[part] : part)).filter((part) => part !== "");
}

export const t = (key, values) => phrase(key, values).join("");
