// Which letters of a text match what was typed.

import { make } from "./elements.js";

// The folded letters of a text without what is between its words, and of each: from and to where it stands in the text,
// and whether it is the first one of a word.
function lettersOf(text) {
  const places = [];
  let [letters, at, open] = ["", 0, false];
  for (const sign of text) {
    const from = at;
    at += sign.length;
    for (const letter of sign.toUpperCase().toLowerCase().normalize("NFKD")) {
      if (/[\p{L}\p{N}]/u.test(letter)) {
        letters += letter;
        // A letter may be two units of the string.
        for (let unit = 0; unit < letter.length; unit += 1) {
          places.push([from, at, !open]);
          open = true;
        }
      } else if (!/[\p{M}\p{Cf}'’]/u.test(letter)) open = false;
      else if (open) places.at(-1)[1] = at;
    }
  }
  return [letters, places];
}

// The text with the letters marked that were typed, as words or all together, where they begin a word, run through
// several or are inside of one; null without a match. What matches only in part is not marked.
export function marked(text, typed) {
  const [letters, places] = lettersOf(text);
  const nodes = [];
  const hit = new Set();
  for (const [one] of [...typed.split(/[\s-]/), typed].map(lettersOf)) {
    places.forEach(([, , first], at) => {
      const isInside = one.length > 2 && !places.slice(at + 1, at + one.length).some(([, , next]) => next);
      if (!letters.startsWith(one, at) || !(first || isInside)) return;
      for (let next = at; next < at + one.length; next += 1) hit.add(next);
    });
  }
  let [end, mark] = [0];
  places.forEach(([from, to], at) => {
    if (!hit.has(at)) return;
    if (!mark || from > end) nodes.push(text.slice(end, from), mark = make("mark"));
    mark.append(text.slice(Math.max(from, end), to));
    end = to;
  });
  return mark ? make("bdi", {}, nodes, text.slice(end)) : null;
}
