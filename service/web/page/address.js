// The URL of a view: every view can be linked to, and is an entry of the history.

export function routeOf(search = location.search) {
  const params = new URLSearchParams(search);
  const country = (params.get("country") ?? "").trim().toUpperCase();
  const query = params.get("q");
  const category = params.get("category") || "";
  const offset = params.get("offset") || "0";
  if (params.get("shop")) return { view: "shop", shop: params.get("shop"), country };
  // A wrong offset is sent unchanged, as the service reports it.
  const page = { category, country, offset: /^\d{1,9}$/.test(offset) ? Number(offset) : offset };
  if (query?.trim()) return { view: "results", query, ...page };
  if (category) return { view: "category", query: "", ...page };
  return query === null ? { view: "start", country } : { view: "results", query: "", ...page };
}

export function hrefOf(route) {
  const params = new URLSearchParams();
  if (route.shop) params.set("shop", route.shop);
  if (route.query || route.view === "results") params.set("q", route.query);
  if (route.category) params.set("category", route.category);
  if (route.country) params.set("country", route.country);
  if (route.offset) params.set("offset", route.offset);
  const search = params.toString();
  return search ? `?${search}` : "./";
}

// A link names a shop by its domain, unless the domain could be read as an id.
export const shopRoute = (shop, country) =>
  ({ view: "shop", shop: shop.domain.includes(".") ? shop.domain : shop.id, country });
