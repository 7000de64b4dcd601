// The thinnest server of Node: its own http module, one process, no framework. A peer brings only `index` and `search`.

import { createServer } from "node:http";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const URL_TYPED = /^(?:https?:\/\/)?(?:www\.)([^/?#\s]+).*$|^https?:\/\/([^/?#\s]+).*$/i;

/** Lower case without diacritics and apostrophes; for documents and queries alike. */
export function folded(text) {
  return text.normalize("NFKD").replace(/[\u0300-\u036f'’`´]/g, "").toLowerCase().normalize("NFC");
}

/** The host of a pasted URL, any other text as it is. */
function hostOf(typed) {
  const found = URL_TYPED.exec(typed.trim());
  return found === null ? typed : (found[1] ?? found[2]);
}

/** Reads the shops, hands them to `index` and answers by `search(q, limit, country)`, which returns shops. */
export async function serve(index, search) {
  const [, , file, port] = process.argv;
  const shops = [];
  for await (const line of createInterface({ input: createReadStream(file, "utf-8"), crlfDelay: Infinity })) {
    shops.push(JSON.parse(line));
  }
  await index(shops);
  const server = createServer((request, response) => {
    const given = new URLSearchParams(request.url.slice(request.url.indexOf("?") + 1));
    const q = given.get("q") ?? "";
    const found = search(hostOf(q), Number(given.get("limit") ?? 8), given.get("country"));
    const body = JSON.stringify({ query: q, shops: found.map(({ id, name, domain, category }) => ({ id, name, domain, category })) });
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
  server.keepAliveTimeout = 600_000;
  server.listen(Number(port), "127.0.0.1");
  process.stdin.on("end", () => process.exit(0)).resume();
}

/** Whether a shop trades in a market: it states it, or states none. */
export function tradesIn(countries, country) {
  return country === null || countries.length === 0 || countries.includes(country);
}
