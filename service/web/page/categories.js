// The categories with their names, which other answers lack, and their icons.

import { call } from "./api.js";
import { badge } from "./format.js";
import { LANGUAGE } from "./language.js";

const names = new Map();

export async function categoryList(signal) {
  const answer = await call("list_categories", { language: LANGUAGE }, signal);
  for (const { slug, category } of answer.results) names.set(slug, category);
  return answer;
}

// Loads the names once. If that fails, slugs are shown instead.
export async function loadNames(signal) {
  if (names.size) return;
  try { await categoryList(signal); } catch { /* slugs are shown */ }
}

export const categoryName = (slug) => names.get(slug) ?? slug;
export const categorySlugs = () => [...names.keys()];

// Prefixes of words of a slug, and the path of their icon in a square of 24.
const ICONS = [
  ["book", "M12 6v14m0-14C9 4 6 4 3 4v14c3 0 6 0 9 2 3-2 6-2 9-2V4c-3 0-6 0-9 2z"],
  ["bicycl|motorcycle", "M6 20a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm12 0a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM6 16l4-8h6l2 8M9 12h8"],
  ["coffee|tea", "M4 9h13v5a5 5 0 0 1-5 5H9a5 5 0 0 1-5-5zm13 1h2a2 2 0 0 1 0 5h-2M8 3v3m5-3v3"],
  ["computer|tech|mobile", "M4 5h16v11H4zM2 20h20"],
  ["electr", "M9 3v5m6-5v5M6 8h12v3a6 6 0 0 1-12 0zm6 9v4"],
  ["kid|bab|child", "M12 21a6 6 0 1 0 0-12 6 6 0 0 0 0 12zm0-12V6m0 0a2 2 0 1 0-2-2M10 14h.1m3.9 0h.1m-4 3c1 1 3 1 4 0"],
  ["beaut|cosmet|perfum", "M9 10h6v11H9zm1 0V6l4-3v7"],
  ["cars?$|cars?-|auto|vehic|tyre", "M4 16v-4l2-5h12l2 5v4zm3 0v3m10-3v3M4 12h16"],
  ["office|print", "M6 9V3h12v6M4 9h16v8h-3v4H7v-4H4zm3 8v-3h10v3"],
  ["market", "M4 10V8l2-4h12l2 4v2M4 10a4 4 0 0 0 8 0 4 4 0 0 0 8 0m-15 4v7h14v-7"],
  ["craft|sewing", "M6 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zm0 12a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 8l12 11M8 16 20 5"],
  ["delica|food|bak", "M3 12 14 5a7 7 0 0 1 7 7zm0 0v7h18v-7"],
  ["diy|doit|tool|hardware|paint", "m14 4 6 6-2 2-6-6zm-1 5L4 18l2 2 9-9"],
  ["fashion|cloth|apparel", "M8 4 3 7l2 4 2-1v10h10V10l2 1 2-4-5-3a4 4 0 0 1-8 0z"],
  ["flower", "M12 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zm0 0v11m0-3c-4 0-6-2-6-5 4 0 6 2 6 5zm0 0c4 0 6-2 6-5-4 0-6 2-6 5z"],
  ["furnit", "M5 11V5h14v6M3 11h3v4h12v-4h3v7H3zm2 7v2m14-2v2"],
  ["garden", "M5 20C5 9 11 4 20 4c0 9-5 14-14 14m-1 2 8-9"],
  ["gift", "M4 9h16v4H4zm2 4v7h12v-7M12 9v11m0-11C5 9 7 3 9 4s3 5 3 5 1-4 3-5 4 5-3 5z"],
  ["grocer|supermarket|convenience", "M3 10h18l-2 10H5zm5 0 3-6m5 6-3-6"],
  ["health|pharm|chemist|optic", "M9 4h6v5h5v6h-5v5H9v-5H4V9h5z"],
  ["jewel|watch", "M7 4h10l4 6-9 10L3 10zm-4 6h18"],
  ["light", "M9 21h6m-6-3h6c0-3 3-4 3-8a6 6 0 0 0-12 0c0 4 3 5 3 8z"],
  ["map|travel", "M12 21s7-6 7-11a7 7 0 0 0-14 0c0 5 7 11 7 11zm0-9a2 2 0 1 0 0-4 2 2 0 0 0 0 4z"],
  ["music", "M9 18V5l11-2v13M6 21a3 3 0 1 0 0-6 3 3 0 0 0 0 6zm11-2a3 3 0 1 0 0-6 3 3 0 0 0 0 6z"],
  ["online|deal", "M3 3h8l10 10-8 8L3 11zm5 5h.1"],
  ["sport|fitness", "M4 9v6m3-8v10m10-10v10m3-8v6M7 12h10"],
  ["outdoor", "m2 20 7-13 4 7 3-4 6 10z"],
  ["pet", "M12 20c-8 0-7-8 0-8s8 8 0 8zM5 9h.1M9 5h.1M15 5h.1M19 9h.1"],
  ["shoe", "M3 8v9h18c0-3-2-4-5-4.5S11 9 10 7L8 9zm0 6h18"],
  ["station", "m4 20 1-5L16 4l4 4L9 19zM14 6l4 4"],
  ["toy|game", "M4 12h7v8H4zm9 0h7v8h-7zM8 4h8v8H8z"],
  ["wine|alcohol", "M8 3h8c1 6 0 9-4 9S7 9 8 3zm4 9v8m-4 0h8"],
  ["", "M5 8h14l1 12H4zm4 0V6a3 3 0 0 1 6 0v2"],
];

// Where several stand together, whose icons are in `used`, each has its own: a letter where none is left.
export function categoryIcon(slug, used) {
  const [, lines] = ICONS.find(([beginnings]) => new RegExp(`(^|-)(${beginnings})`).test(slug));
  if (used?.has(lines)) return badge({ name: categoryName(slug), id: slug });
  used?.add(lines);
  const drawn = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const icon = drawn("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" });
  icon.append(drawn("path", { d: lines }));
  return icon;
}
