// The address says what is shown: every view can be linked to, and the history goes through them.

export function placeOf(search = location.search) {
  const asked = new URLSearchParams(search);
  const country = (asked.get("country") ?? "").trim().toUpperCase();
  const query = asked.get("q");
  const category = asked.get("category") || "";
  const offset = asked.get("offset") || "0";
  if (asked.get("shop")) return { view: "shop", shop: asked.get("shop"), country };
  // What is no number is sent as it is: the service says what is wrong with it.
  const page = { category, country, offset: /^\d{1,9}$/.test(offset) ? Number(offset) : offset };
  if (query?.trim()) return { view: "results", query, ...page };
  if (category) return { view: "category", query: "", ...page };
  return query === null ? { view: "start", country } : { view: "results", query: "", ...page };
}

export function hrefOf(place) {
  const asked = new URLSearchParams();
  if (place.shop) asked.set("shop", place.shop);
  if (place.query || place.view === "results") asked.set("q", place.query);
  if (place.category) asked.set("category", place.category);
  if (place.country) asked.set("country", place.country);
  if (place.offset) asked.set("offset", place.offset);
  const search = asked.toString();
  return search ? `?${search}` : "./";
}

// What a link names a shop by: its domain, unless that could be taken for an id.
export const shopPlace = (shop, country) =>
  ({ view: "shop", shop: shop.domain.includes(".") ? shop.domain : shop.id, country });
