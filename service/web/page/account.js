// The choice of the country, and the account: a token that stays in this tab and is sent to this service only.

import { useToken } from "./api.js";
import { COUNTRY_CODES } from "./countries.js";
import { make } from "./elements.js";
import { countryName } from "./format.js";

const STORED = "shop-directory.token";

export function countryChoice(select, changed) {
  const order = new Intl.Collator("en").compare;
  const named = COUNTRY_CODES.map((code) => [countryName(code), code]).sort(([one], [other]) => order(one, other));
  select.append(...named.map(([name, code]) => make("option", { value: code }, name)));
  select.addEventListener("change", () => changed(select.value));
}

export function account(corner, panel, changed) {
  const input = panel.querySelector("input");
  let used = stored();
  let length = used.length;

  function apply() {
    useToken(used);
    // Controls that need a token are shown only with one.
    document.documentElement.toggleAttribute("data-token", used !== "");
    corner.textContent = used ? "Account ✓" : "Account";
    corner.ariaLabel = used ? "Account: a token is used" : null;
  }

  function use(text) {
    // A header allows no other characters.
    const fits = /^[\x21-\x7e]*$/.test(text.trim());
    const token = fits ? text.trim() : "";
    input.setAttribute("aria-invalid", String(!fits));
    if (token === used && fits) return;
    used = token;
    store(token);
    apply();
    changed(token ? "The token is used in this tab until it is closed."
      : fits ? "No token is used." : "This can’t be a token: it holds more than plain letters, digits and signs.");
  }

  input.value = used;
  apply();
  input.addEventListener("change", () => use(input.value));
  // A pasted or filled-in token is used immediately, a typed one on change.
  input.addEventListener("input", () => {
    const grown = input.value.length - length;
    length = input.value.length;
    if (Math.abs(grown) > 1 || !length) use(input.value);
  });
  panel.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter.value === "out") input.value = "";
    use(input.value);
    panel.hidePopover();
  });
}

function stored() {
  try { return sessionStorage.getItem(STORED) ?? ""; } catch { return ""; }
}

function store(token) {
  try {
    if (token) sessionStorage.setItem(STORED, token);
    else sessionStorage.removeItem(STORED);
  } catch { /* without storage, the token is used until the page is left */ }
}
