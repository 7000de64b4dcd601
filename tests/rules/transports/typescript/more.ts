// Asks for what MCP offers in addition to tools, with the official TypeScript client, and prints it as one JSON document.
// Usage: node more.ts <url> <legacy | auto | a protocol version>

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, era] = process.argv.slice(2);
const mode = era === "legacy" || era === "auto" ? era : { pin: era };
const client = new Client({ name: "shop-directory-test", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

const ref = { type: "ref/resource" as const, uri: "shop://{domain}" };
let missing = {};
try {
  await client.readResource({ uri: "shop://nobody.example" });
} catch (error) {
  missing = { code: (error as { code?: unknown }).code, data: (error as { data?: unknown }).data };
}
console.log(
  JSON.stringify({
    resources: (await client.listResources()).resources.map((resource) => resource.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
    prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
    read: (await client.readResource({ uri: "shop://harbour-lane-books.example" })).contents,
    prompt: (await client.getPrompt({ name: "find_a_code", arguments: { shop_domain: "shop_books" } })).messages,
    completed: (await client.complete({ ref, argument: { name: "domain", value: "harb" } })).completion,
    missing,
  }),
);
await client.close();
