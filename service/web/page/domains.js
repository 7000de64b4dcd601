// Domains in Unicode, and links to them.

// RFC 3492: a label without its xn--.
function decoded(label) {
  const cut = label.lastIndexOf("-");
  const signs = [...label.slice(0, Math.max(cut, 0))].map((sign) => sign.codePointAt(0));
  let [next, index, bias] = [128, 0, 72];
  for (let at = cut + 1; at < label.length;) {
    const before = index;
    for (let weight = 1, k = 36; ; k += 36) {
      // Behind the end of a label that stops within a number, parseInt would read the word undefined as one.
      const digit = parseInt(label[at] ?? "-", 36);
      const value = digit < 10 ? digit + 26 : digit - 10;
      at += 1;
      if (Number.isNaN(value)) throw new RangeError(label);
      index += value * weight;
      const limit = Math.min(26, Math.max(1, k - bias));
      if (value < limit) break;
      weight *= 36 - limit;
    }
    const size = signs.length + 1;
    let delta = Math.floor((index - before) / (before ? 2 : 700));
    delta += Math.floor(delta / size);
    for (bias = 0; delta > 455; bias += 36) delta = Math.floor(delta / 35);
    bias += Math.floor((36 * delta) / (delta + 38));
    next += Math.floor(index / size);
    index %= size;
    signs.splice(index, 0, next);
    index += 1;
  }
  return String.fromCodePoint(...signs);
}

// A domain in Unicode. It stays in ASCII if the browser would not map it back to the same domain, or if a label mixes
// alphabets whose letters look alike.
export function readable(domain) {
  try {
    const labels = domain.split(".").map((label) => (label.startsWith("xn--") ? decoded(label.slice(4)) : label));
    const shown = labels.join(".");
    const mixed = labels.some((label) => /\p{sc=Latin}/u.test(label) && /[\p{sc=Cyrillic}\p{sc=Greek}]/u.test(label));
    return !mixed && new URL(`https://${shown}`).hostname === domain ? shown : domain;
  } catch {
    return domain;
  }
}

// The URL of a shop's own site; null if its domain makes none.
export function siteOf(domain) {
  try {
    const url = new URL(`https://${domain}/`);
    return url.hostname === domain ? url.href : null;
  } catch {
    return null;
  }
}

// The target gets no handle on this page and no referrer.
export const OUTWARDS = { target: "_blank", rel: "external noopener noreferrer nofollow", referrerpolicy: "no-referrer" };
