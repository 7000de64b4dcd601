// Makes elements. Every text becomes a text node, so that the name of a shop is never markup.

export function make(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null));
  return made;
}

// Whether the screen has room for two columns.
export const isWide = () => matchMedia("(min-width: 56rem)").matches;

// A text from the catalogue, whose direction does not affect its neighbours.
export const bdi = (text) => make("bdi", {}, String(text));

// The title of a name of which the style may show no more than three lines.
export const wholeOf = (text) => (text.length > 50 ? text : undefined);
