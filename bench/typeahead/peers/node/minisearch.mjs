// MiniSearch: prefixes and typos of a fifth of a word's length, all words wanted, boosted by field and popularity.

import MiniSearch from "minisearch";
import { folded, serve, tradesIn } from "./door.mjs";

const FUZZY_FROM = 4;
const byPopRank = [];
const engine = new MiniSearch({
  idField: "pop_rank",
  fields: ["name", "aliases", "domain", "categories"],
  extractField: (shop, field) => (Array.isArray(shop[field]) ? shop[field].join(" ") : shop[field]),
  processTerm: (term) => folded(term) || null,
  searchOptions: {
    prefix: true,
    fuzzy: (term) => (term.length >= FUZZY_FROM ? 0.2 : false),
    boost: { name: 3, aliases: 2, domain: 1.5, categories: 0.3 },
    boostDocument: (pop_rank) => 1 + byPopRank[pop_rank].popularity,
  },
});

function index(shops) {
  for (const shop of shops) byPopRank[shop.pop_rank] = shop;
  engine.addAll(shops);
}

function search(q, limit, country) {
  const filter = country === null ? undefined : ({ id }) => tradesIn(byPopRank[id].countries, country);
  const typed = folded(q).trim();
  if (typed === "") return byPopRank.filter((shop) => tradesIn(shop.countries, country)).slice(0, limit);
  // Nobody means a domain or a category by one or two characters, and a third of the shops would match.
  const fields = typed.length <= 2 ? { fields: ["name", "aliases"] } : {};
  let found = engine.search(typed, { combineWith: "AND", filter, ...fields });
  if (found.length === 0) found = engine.search(typed, { combineWith: "OR", filter });
  return found.slice(0, limit).map(({ id }) => byPopRank[id]);
}

await serve(index, search);
