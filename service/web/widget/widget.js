// <shop-typeahead>: a search field for shops and categories, for pages of any origin. It works with keyboard and screen
// reader, is styled by parts and custom properties, and fires `choose` with {kind, shop} or {kind, category}.

import { combobox, suggested } from "../page/combobox.js";
import { make } from "../page/elements.js";

const STYLE = new CSSStyleSheet();
STYLE.replaceSync(`:host{display:block;position:relative}
*{box-sizing:border-box}
label{display:block;margin-bottom:.3em}
input,#list{width:100%;font:inherit;color:var(--shop-ink,CanvasText);background:var(--shop-surface,Canvas);border:1px solid var(--shop-line,GrayText);border-radius:var(--shop-radius,.5em);padding:.6em}
#list{position:absolute;z-index:9;max-height:20em;overflow:auto;padding:.3em}
[part=group]{padding:.3em .6em;font-size:.85em}
[role=option]{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1em;padding:.5em .6em;cursor:pointer}
[aria-selected=true]{background:var(--shop-accent,Highlight);color:var(--shop-accent-ink,HighlightText)}
[part=status]:not(.shown){position:absolute;clip-path:inset(50%)}
mark{background:none;color:inherit;font-weight:bold}`);

class ShopTypeahead extends HTMLElement {
  static observedAttributes = ["country", "category"];

  connectedCallback() {
    if (this.shadowRoot) return;
    const label = this.given("label", "Find a shop");
    const field = make("input", {
      id: "field", part: "field", role: "combobox", "aria-autocomplete": "list", "aria-controls": "list",
      "aria-expanded": "false", autocomplete: "off", spellcheck: "false", maxlength: "200", dir: "auto",
    });
    const list = make("div", { id: "list", part: "list", role: "listbox", "aria-label": label, hidden: "" });
    const status = make("div", { part: "status", role: "status" });
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    root.adoptedStyleSheets = [STYLE];
    root.append(make("label", { for: "field", part: "label" }, label), field, list, status);
    const { defer } = combobox(field, list, {
      debounce: 50,
      ask: async (text, signal) =>
        suggested(await this.ask(text, signal), text, ["Shops", "Categories", "Similar names"], String),
      choose: ({ kind, found }) => {
        field.value = found.name ?? found.category;
        this.dispatchEvent(new CustomEvent("choose", { detail: { kind, [kind]: found }, bubbles: true }));
      },
      report: (groups, failure) => {
        // The number of suggestions is for screen readers only, so that the page does not move while somebody types.
        status.className = failure ? "shown" : "";
        const found = groups.flatMap(([, rows]) => rows).length;
        status.textContent = failure ? "The directory did not answer." : groups.length ? `Suggestions: ${found}` : "";
      },
    });
    this.changed = () => root.activeElement && field.value.trim() && defer();
  }

  // What is suggested just now follows a changed attribute.
  attributeChangedCallback() {
    this.changed?.();
  }

  given(name, otherwise = "") {
    return this.getAttribute(name) || otherwise;
  }

  // The shops of one category are those of find_shop, as /suggest knows no filter by category.
  async ask(q, signal) {
    const [limit, country, category] = [this.given("limit", "6"), this.given("country"), this.given("category")];
    if (!category) return this.fetched(`suggest?${new URLSearchParams({ q, limit, country })}`, { signal });
    const { results, ignored_terms: ignored } = await this.fetched("tool/find_shop", {
      signal, method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: q, limit: Number(limit), country, category }) });
    // Where a word was ignored, the shops answer a question that nobody typed.
    return { shops: ignored.length ? [] : results, categories: [] };
  }

  async fetched(path, options) {
    const answer = await fetch(new URL(path, this.given("service", import.meta.url)),
      { ...options, signal: AbortSignal.any([options.signal, AbortSignal.timeout(15_000)]) });
    if (!answer.ok) throw { wait: Number(answer.headers.get("retry-after")) };
    return answer.json();
  }
}

customElements.define("shop-typeahead", ShopTypeahead);
