// A text field with suggestions below it, after the ARIA pattern: the focus stays in the field, the list is steered from
// there. A late answer never replaces a newer one.

import { make, said } from "./elements.js";
import { count } from "./words.js";

const PAUSE = 60;

const isSame = (one, other) => one.kind === other?.kind && one.id === other.id && one.slug === other.slug;

// ask(text, signal) answers what to suggest, choose(suggestion) opens one, tell(text, failure) says how it went.
export function combobox(field, list, { ask, choose, tell }) {
  let turn = 0;
  let asking = null;
  let timer = 0;
  let lastAsked = -PAUSE;
  let notBefore = 0;
  let options = [];
  let active = -1;

  const isOpen = () => !list.hidden;

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    activate(-1);
  }

  function leave() {
    turn += 1;
    clearTimeout(timer);
    asking?.abort();
    close();
  }

  function activate(at) {
    options[active]?.element.setAttribute("aria-selected", "false");
    active = at;
    const element = options[at]?.element;
    if (!element) return field.removeAttribute("aria-activedescendant");
    element.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", element.id);
    element.scrollIntoView({ block: "nearest" });
  }

  // The first key is asked for at once, further ones when the hand has paused for a moment.
  function ponder() {
    clearTimeout(timer);
    const now = performance.now();
    const wait = Math.max(lastAsked + PAUSE - now, notBefore - now);
    if (wait <= 0) request();
    else timer = setTimeout(request, wait);
  }

  async function request() {
    lastAsked = performance.now();
    turn += 1;
    const mine = turn;
    asking?.abort();
    asking = new AbortController();
    try {
      const found = await ask(field.value, asking.signal);
      if (mine === turn) show(found);
    } catch (failure) {
      if (mine !== turn || failure.kind === "aborted") return;
      close();
      notBefore = performance.now() + (failure.wait ?? 0) * 1000;
      tell(null, failure);
      if (failure.wait) timer = setTimeout(request, failure.wait * 1000);
    }
  }

  function show({ shops, categories }) {
    // Whoever is in the list already when the answer to the last key comes stays where they are.
    const held = options[active]?.suggestion;
    options = [];
    const groups = [
      group("Shops", shops, (shop) => [{ kind: "shop", id: shop.id, domain: shop.domain }, [
        make("span", { class: "name" }, said(shop.name)), make("span", { class: "aside" }, said(shop.domain))]]),
      group("Categories", categories, (found) => [{ kind: "category", slug: found.slug }, [
        make("span", { class: "name" }, said(found.category)), make("span", { class: "aside" }, count(found.count, "shop"))]]),
    ];
    list.replaceChildren(...groups.filter(Boolean));
    list.hidden = options.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    activate(options.findIndex(({ suggestion }) => isSame(suggestion, held)));
    tell(options.length
      ? `${count(shops.length, "shop")} and ${count(categories.length, "category", "categories")} suggested.`
      : "Nothing to suggest.");
  }

  function group(title, found, parts) {
    if (!found.length) return null;
    const id = `suggested-${title.toLowerCase()}`;
    const elements = found.map((one) => {
      const [suggestion, children] = parts(one);
      const at = options.length;
      const element = make("div", {
        role: "option", id: `suggestion-${at}`, "aria-selected": "false",
        "data-kind": suggestion.kind, "data-id": suggestion.id, "data-slug": suggestion.slug,
        onclick: () => pick(at), onpointermove: () => active !== at && activate(at),
      }, children);
      options.push({ element, suggestion });
      return element;
    });
    return make("div", { role: "group", "aria-labelledby": id },
      make("div", { class: "group", id, role: "presentation" }, title), elements);
  }

  function pick(at) {
    const { suggestion } = options[at];
    leave();
    choose(suggestion);
  }

  const last = () => options.length - 1;
  const keys = {
    ArrowDown: () => (isOpen() ? activate(active >= last() ? 0 : active + 1) : request()),
    ArrowUp: () => isOpen() && activate(active <= 0 ? last() : active - 1),
    Home: () => isOpen() && active >= 0 ? activate(0) : false,
    End: () => isOpen() && active >= 0 ? activate(last()) : false,
    Enter: () => isOpen() && active >= 0 ? pick(active) : false,
    Escape: () => {
      if (!isOpen()) field.value = "";
      leave();
      tell("");
    },
  };

  field.addEventListener("keydown", (event) => {
    // While signs are being composed, the keys belong to the input method.
    if (event.isComposing || event.ctrlKey || event.metaKey || event.shiftKey || !Object.hasOwn(keys, event.key)) return;
    if (keys[event.key]() !== false) event.preventDefault();
  });
  field.addEventListener("input", () => {
    activate(-1);
    if (field.value.trim()) return ponder();
    leave();
    tell("");
  });
  field.addEventListener("blur", leave);
  // The field keeps the focus while somebody clicks into the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  return { leave, ponder };
}
