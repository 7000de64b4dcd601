// Which words of a text match what was typed.

import { make } from "./elements.js";

// The words of a text: their folded letters, and where they begin and end.
function wordsOf(text) {
  const words = [];
  let [at, open] = [0, false];
  for (const sign of text) {
    const to = at + sign.length;
    for (const letter of sign.toUpperCase().toLowerCase().normalize("NFKD")) {
      if (/[\p{L}\p{N}]/u.test(letter)) {
        if (!open) words.push({ letters: "", from: at });
        open = true;
        words.at(-1).letters += letter;
      } else if (!/[\p{M}\p{Cf}'’]/u.test(letter)) open = false;
      if (open) words.at(-1).to = to;
    }
    at = to;
  }
  return words;
}

// How many words from one on the letters begin or run through; 0 if they are not there.
function run(words, at, letters) {
  let joined = "";
  for (let end = at; end < words.length && letters.startsWith(joined); end += 1) {
    joined += words[end].letters;
    if (joined.startsWith(letters)) return end + 1 - at;
  }
  return 0;
}

// The text with each word marked that a typed word, or all that was typed, begins, runs through or is inside of; null
// without a match. What matches only in part is not marked.
export function marked(text, typed) {
  const [words, wanted] = [wordsOf(text), wordsOf(typed).map(({ letters }) => letters)];
  const hit = new Set();
  words.forEach(({ letters }, at) => {
    for (const one of [...wanted, wanted.join("")]) {
      const inside = one.length > 2 && letters.includes(one) ? 1 : 0;
      for (let next = at; one && next < at + (run(words, at, one) || inside); next += 1) hit.add(next);
    }
  });
  const nodes = [];
  let end = 0;
  words.forEach(({ from, to }, at) => {
    if (hit.has(at)) nodes.push(text.slice(end, from), make("mark", {}, text.slice(from, end = to)));
  });
  return nodes.length ? make("bdi", {}, nodes, text.slice(end)) : null;
}
