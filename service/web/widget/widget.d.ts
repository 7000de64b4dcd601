// Types of <shop-typeahead>, for pages that are written in TypeScript: a copy beside the page, or from /widget.d.ts.

/** A shop, as /suggest sends it; with the attribute `category`, as find_shop sends it. */
export interface ShopTypeaheadShop {
  id: string;
  name: string;
  domain: string;
  /** The slug of its first category. */
  category: string;
  /** How well it matches; of /suggest only. */
  score?: number;
}

export interface ShopTypeaheadCategory {
  category: string;
  slug: string;
  /** How many shops carry it. */
  count: number;
}

/** The `detail` of the event `choose`. */
export type ShopTypeaheadChoice =
  | { kind: "shop"; shop: ShopTypeaheadShop }
  | { kind: "category"; category: ShopTypeaheadCategory };

/** Its attributes: label, country, category, limit, service. */
export interface ShopTypeahead extends HTMLElement {}

declare global {
  interface HTMLElementTagNameMap {
    "shop-typeahead": ShopTypeahead;
  }
  interface GlobalEventHandlersEventMap {
    choose: CustomEvent<ShopTypeaheadChoice>;
  }
}
