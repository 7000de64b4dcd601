// Calls the service with the official TypeScript client and prints what it received, one JSON document on stdout.
// Usage: node calls.ts <url> <legacy | auto | a protocol version>; the calls come as JSON on stdin,
// the token, if any, in SHOP_DIRECTORY_API_TOKEN.

import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

type Call = [tool: string, args: Record<string, unknown>];

const [url, era] = process.argv.slice(2);
const calls: Call[] = JSON.parse(readFileSync(0, "utf-8"));
const mode = era === "legacy" || era === "auto" ? era : { pin: era };

const client = new Client({ name: "shop-directory-test", version: "1.0.0" }, { versionNegotiation: { mode } });
const token = process.env.SHOP_DIRECTORY_API_TOKEN;
const requestInit = token ? { headers: { "x-api-token": token } } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));

const { tools } = await client.listTools();
const answers = [];
for (const [name, args] of calls) {
  try {
    answers.push(await client.callTool({ name, arguments: args }));
  } catch (error) {
    answers.push({ thrown: { code: (error as { code?: unknown }).code, message: (error as Error).message } });
  }
}
console.log(
  JSON.stringify({
    version: client.getNegotiatedProtocolVersion?.() ?? null,
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    answers,
  }),
);
await client.close();
