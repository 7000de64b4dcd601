// Which letters of a name match the typed text.

import { make } from "./elements.js";

// The folded letters of a text, each with its position, and whether a word starts there.
function folded(text) {
  const letters = [];
  let [at, start] = [0, true];
  for (const sign of text) {
    const to = at + sign.length;
    for (const letter of sign.toUpperCase().toLowerCase().normalize("NFKD")) {
      if (/[\p{L}\p{N}]/u.test(letter)) {
        letters.push({ letter, at, to, start });
        start = false;
      } else if (!/[\p{M}\p{Cf}'’]/u.test(letter)) start = true;
      else if (letters.length) letters.at(-1).to = to;
    }
    at = to;
  }
  return letters;
}

// Marks the longest prefix of `wanted` at the start of a word; returns its length.
function mark(letters, wanted) {
  let [from, most] = [0, 0];
  letters.forEach(({ start }, at) => {
    let length = 0;
    while (start && length < wanted.length && letters[at + length]?.letter === wanted[length].letter) length += 1;
    if (length > most) [from, most] = [at, length];
  });
  // A single letter of a longer text is not marked.
  if (most > 1 || most === wanted.length) for (let at = 0; at < most; at += 1) letters[from + at].hit = true;
  return most;
}

// The text with its matching letters marked: of the whole typed text, else of each of its words; null without a match.
export function marked(text, typed) {
  const letters = folded(text);
  const wanted = folded(typed);
  if (mark(letters, wanted) < wanted.length) for (const word of typed.split(/\s+/)) mark(letters, folded(word));
  const nodes = [];
  let end = 0;
  for (let at = 0; at < letters.length; at += 1) {
    if (!letters[at].hit) continue;
    const from = letters[at].at;
    while (letters[at + 1]?.hit) at += 1;
    nodes.push(text.slice(end, from), make("mark", {}, text.slice(from, end = letters[at].to)));
  }
  return nodes.length ? make("bdi", {}, nodes, text.slice(end)) : null;
}
