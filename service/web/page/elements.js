// Makes elements. Every text becomes a text node: whatever a shop is called, it is never markup.

export function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null));
  return made;
}

// A text of somebody else's: its direction is its own and reaches no neighbour.
export const said = (text) => make("bdi", {}, String(text));

export const missing = (text = "not stated") => make("span", { class: "missing" }, text);

// Rows of a name and what is known; null is said as missing.
export function facts(...rows) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of rows) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value ?? missing())));
  return list;
}

export function joined(parts, between = ", ") {
  return parts.flatMap((part, at) => (at ? [between, part] : [part]));
}

// A square with the first sign of a name, to tell the rows of a list apart at a glance.
export function badge(name, id) {
  const sign = [...new Intl.Segmenter().segment(name.replace(/[\p{C}\p{Z}\p{P}\p{S}]/gu, "") || "·")][0].segment;
  let tone = 0;
  for (const letter of id) tone = (tone * 31 + letter.codePointAt(0)) % 4;
  return make("span", { class: `badge tone-${tone}`, "aria-hidden": "true" }, sign.toLocaleUpperCase("en"));
}
