// Orama: prefixes as it has them by default, one typo when nothing else is found, boosted by field; the most popular of equals.

import { create, insertMultiple, search as ask } from "@orama/orama";
import { folded, serve, tradesIn } from "./door.mjs";

const FUZZY_FROM = 4;
const CANDIDATES = 100;
const CANDIDATES_OF_WORDS = 500;
const ALL_WORDS = 1000;
const byId = new Map();
const engine = create({
  schema: { name: "string", aliases: "string", domain: "string", categories: "string", countries: "enum[]" },
  components: {
    tokenizer: {
      language: "any",
      normalizationCache: new Map(),
      // As it comes, the tokenizer splits Latin letters only.
      tokenize: (text) => [...new Set(wordsOf(text))],
    },
  },
});

function wordsOf(text) {
  return folded(text).split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
}

/** Whether every word typed begins a word of the shop. */
function hasAll(shop, typed) {
  const words = wordsOf([shop.name, ...shop.aliases, shop.domain, ...shop.categories].join(" "));
  return typed.every((one) => words.some((word) => word.startsWith(one)));
}

async function index(shops) {
  for (const shop of shops) byId.set(shop.id, shop);
  const documents = shops.map((shop) => ({
    id: shop.id,
    name: shop.name,
    aliases: shop.aliases.join(" "),
    domain: shop.domain,
    categories: shop.categories.join(" "),
    countries: shop.countries.length === 0 ? ["any"] : shop.countries,
  }));
  await insertMultiple(engine, documents, 1000);
}

function found(term, threshold, tolerance, country) {
  const typed = wordsOf(term);
  const { hits } = ask(engine, {
    term,
    threshold,
    tolerance,
    limit: typed.length > 1 ? CANDIDATES_OF_WORDS : CANDIDATES,
    boost: { name: 3, aliases: 2, domain: 1.5, categories: 0.3 },
    ...(country === null ? {} : { where: { countries: { containsAny: [country, "any"] } } }),
  });
  const shops = hits.map(({ id, score }) => ({ shop: byId.get(id), score: score * (1 + byId.get(id).popularity) }));
  // A prefix that begins two words of one shop, or rare ones, outweighs a word that is there and one that is not.
  if (typed.length > 1) for (const one of shops) if (hasAll(one.shop, typed)) one.score += ALL_WORDS;
  return shops.sort((one, other) => other.score - one.score).map(({ shop }) => shop);
}

function search(q, limit, country) {
  const term = folded(q).trim();
  if (term === "") return [...byId.values()].filter((shop) => tradesIn(shop.countries, country)).slice(0, limit);
  // Threshold 0: every word is wanted, in one property; 1: any.
  const best = new Set(found(term, 0, 0, country));
  const typo = () => found(term, 0, 1, country);
  if (best.size === 0 && term.length >= FUZZY_FROM) for (const shop of typo()) best.add(shop);
  if (best.size < limit && /\s/.test(term)) for (const shop of found(term, 1, 0, country)) best.add(shop);
  return [...best].slice(0, limit);
}

await serve(index, search);
