// The categories that there are, and their names: other answers carry slugs only.

import { call } from "./api.js";

const names = new Map();

export async function categoryList(signal) {
  const answer = await call("list_categories", {}, signal);
  for (const { slug, category } of answer.results) names.set(slug, category);
  return answer;
}

// Asked for once. Where that fails, a slug stands for itself: a name is no reason to show no answer.
export async function learnNames(signal) {
  if (names.size) return;
  try { await categoryList(signal); } catch { /* the slugs do */ }
}

export const categoryName = (slug) => names.get(slug) ?? slug;
