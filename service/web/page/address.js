// The URL of a view: every view can be linked to, and is an entry of the history.

import { COUNTRY_CODES } from "./countries.js";

export function routeOf(search = location.search) {
  const params = new URLSearchParams(search);
  const all = (name) => [...new Set(params.getAll(name).map((text) => text.trim()).filter(Boolean))];
  const codes = (name) => all(name).map((code) => code.toUpperCase());
  const [query, offset] = [params.get("q"), params.get("offset") || "0"];
  const [categories, countries, [shipsTo = ""]] = [all("category"), codes("country"), codes("ships_to")];
  // Of several countries none is that of the visitor, nor is one that does not exist.
  const country = countries.length === 1 && COUNTRY_CODES.includes(countries[0]) ? countries[0] : "";
  if (params.get("shop")) return { view: "shop", shop: params.get("shop"), country };
  const page = {
    categories,
    countries,
    country,
    shipsTo,
    unsettled: shipsTo !== "" && params.get("include_unsettled") === "true",
    hasCode: params.get("has_code") === "true",
    // A wrong offset is sent unchanged, as the service reports it.
    offset: /^\d{1,9}$/.test(offset) ? Number(offset) : offset,
  };
  if (query?.trim()) return { view: "results", query, ...page };
  if (categories.length) return { view: "category", query: "", ...page };
  return query === null ? { view: "start", country } : { view: "results", query: "", ...page };
}

export function hrefOf(route) {
  const params = new URLSearchParams();
  if (route.shop) params.set("shop", route.shop);
  if (route.query || route.categories?.length === 0) params.set("q", route.query);
  for (const slug of route.categories ?? []) params.append("category", slug);
  for (const code of route.countries ?? [route.country]) if (code) params.append("country", code);
  if (route.shipsTo) params.set("ships_to", route.shipsTo);
  if (route.unsettled) params.set("include_unsettled", "true");
  if (route.hasCode) params.set("has_code", "true");
  if (route.offset) params.set("offset", route.offset);
  const search = params.toString();
  return search ? `?${search}` : "./";
}

// A link names a shop by its domain, unless the domain could be read as an id.
export const shopRoute = (shop, country) =>
  ({ view: "shop", shop: shop.domain.includes(".") ? shop.domain : shop.id, country });
