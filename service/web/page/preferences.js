// The country that answers are for, and the token: it stays in this tab, and goes to this service only.

import { useToken } from "./api.js";
import { COUNTRY_CODES } from "./countries.js";
import { make } from "./elements.js";
import { countryName } from "./words.js";

const KEPT = "shop-directory.token";

export function countryChoice(select, changed) {
  const order = new Intl.Collator("en").compare;
  const named = COUNTRY_CODES.map((code) => [countryName(code), code]).sort(([one], [other]) => order(one, other));
  select.append(...named.map(([name, code]) => make("option", { value: code }, name)));
  select.addEventListener("change", () => changed(select.value));
}

export function tokenEntry(input, changed) {
  let used = "";
  let length = 0;

  function use(text) {
    // A header holds nothing else; the service would never see it.
    const fits = /^[\x21-\x7e]*$/.test(text.trim());
    const token = fits ? text.trim() : "";
    input.setAttribute("aria-invalid", String(!fits));
    if (token === used && fits) return;
    used = token;
    useToken(token);
    keep(token);
    changed(token ? "The token is used in this tab until it is closed."
      : fits ? "No token is used." : "This can’t be a token: it holds more than plain letters, digits and signs.");
  }

  input.value = kept();
  used = input.value;
  useToken(used);
  length = input.value.length;
  input.addEventListener("change", () => use(input.value));
  // Pasted or filled in as a whole; typed letter by letter it is used when it is there.
  input.addEventListener("input", () => {
    const grown = input.value.length - length;
    length = input.value.length;
    if (Math.abs(grown) > 1 || !length) use(input.value);
  });
}

function kept() {
  try { return sessionStorage.getItem(KEPT) ?? ""; } catch { return ""; }
}

function keep(token) {
  try {
    if (token) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  } catch { /* then it is used until the page is left */ }
}
