// The country where the visitor lives, which this browser remembers, and the token: it stays in this tab. Either is sent
// to this service only.

import { call, useToken } from "./api.js";
import { COUNTRY_CODES } from "./countries.js";
import { make } from "./elements.js";
import { sentence } from "./failures.js";
import { SITE, countryName } from "./format.js";
import { LOCALE, t } from "./texts.js";

// A text that the browser stores; without storage, it is used until the page is left.
function stored(storage, key) {
  return {
    read() { try { return window[storage].getItem(key) ?? ""; } catch { return ""; } },
    write(text) { try { text ? window[storage].setItem(key, text) : window[storage].removeItem(key); } catch { /* as above */ } },
  };
}

const TOKEN = stored("sessionStorage", "shop-directory.token");
const HOME = stored("localStorage", "shop-directory.country");
let byName = null;

// An address that names no country gets the remembered one.
export function atHome(route) {
  const country = HOME.read();
  if (route.country || route.countries?.length || !COUNTRY_CODES.includes(country)) return route;
  return { ...route, country, ...(route.countries && { countries: [country] }) };
}

export function homeChoice(select, changed) {
  countryChoice(select, (chosen) => {
    HOME.write(chosen);
    changed(chosen);
  });
}

export function countryChoice(select, changed) {
  const order = new Intl.Collator(LOCALE).compare;
  byName ??= COUNTRY_CODES.map((code) => [countryName(code), code]).sort(([one], [other]) => order(one, other));
  select.append(...byName.map(([name, code]) => make("option", { value: code }, name)));
  select.addEventListener("change", () => changed(select.value));
}

// How a token is got from this operator.
function origin({ token }) {
  if (!token) return t("token_origin");
  return token.url ? make("a", { href: token.url }, token.text) : token.text;
}

// What a token adds, and how one is got; hidden while one is used.
export const tokenHint = (text) => make("p", { class: "small locked" }, `${text} `, origin(SITE), " ",
  make("button", { type: "button", class: "quiet", popovertarget: "account" }, t("token_enter")));

export function account(corner, panel, changed) {
  const [input, note] = [panel.querySelector("input"), panel.querySelector("[role=alert]")];
  let used = TOKEN.read();
  let length = used.length;
  let asked = used;
  let outcome = "";

  function apply() {
    useToken(used);
    // Controls that need a token are shown only with one.
    document.documentElement.toggleAttribute("data-token", used !== "");
    corner.textContent = used ? `${t("token")} ✓` : t("token");
    corner.ariaLabel = used ? t("token_is_used") : null;
  }

  // Resolves to what is wrong with the text, empty if nothing is.
  function use(text) {
    if (text.trim() !== asked) {
      asked = text.trim();
      outcome = check(asked);
    }
    return outcome;
  }

  async function check(token) {
    note.textContent = token && t("looking");
    const fault = token && await refusedBecause(token);
    if (token !== asked) return fault;
    note.textContent = fault;
    input.setAttribute("aria-invalid", String(fault !== ""));
    used = fault ? "" : token;
    TOKEN.write(used);
    apply();
    changed(fault ? "" : token ? t("token_taken") : t("token_none"));
    // The same text may be tried again.
    if (fault) asked = null;
    return fault;
  }

  panel.querySelector("#token-use").append(" ", origin(SITE));
  input.value = used;
  apply();
  input.addEventListener("change", () => use(input.value));
  // A pasted or filled-in token is used immediately, a typed one on change.
  input.addEventListener("input", () => {
    const grown = input.value.length - length;
    length = input.value.length;
    if (Math.abs(grown) > 1 || !length) use(input.value);
  });
  panel.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (event.submitter.value === "out") input.value = "";
    if (!await use(input.value)) panel.hidePopover();
  });
}

// Why a text is not taken as a token; the facts of any shop are asked for, as only they need one.
async function refusedBecause(token) {
  // A header allows no other characters.
  if (!/^[\x21-\x7e]*$/.test(token)) return t("token_malformed");
  const { signal } = new AbortController();
  useToken(token);
  try {
    const { results: [any] } = await call("find_shop", { query: "", limit: 1 }, signal);
    if (any) await call("get_trust", { shop_domain: any.id }, signal);
    return "";
  } catch (failure) {
    // Such a shop may leave the directory just then, which says nothing of the token.
    return failure.status === 404 ? "" : sentence(failure);
  }
}
