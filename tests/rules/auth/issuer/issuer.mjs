// A real authorization server: node issuer.mjs PORT FILE, where the file has its private keys and settings as JSON.
// It signs everybody in as `subject`, and consents to what was asked for.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import Provider from "oidc-provider";

const port = Number(process.argv[2]);
const { keys, resource, scopes, subject } = JSON.parse(readFileSync(process.argv[3], "utf8"));
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys },
  scopes: ["openid", "offline_access", ...scopes],
  clients: [
    {
      client_id: "machine",
      client_secret: "machine-secret",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => ({
        audience: indicator,
        scope: scopes.join(" "),
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: keys[0].alg } },
      }),
    },
  },
});

async function consented({ params, session }) {
  const grant = new provider.Grant({ clientId: params.client_id, accountId: session.accountId });
  grant.addOIDCScope(params.scope);
  grant.addResourceScope(resource, scopes.join(" "));
  return { consent: { grantId: await grant.save() } };
}

const answer = provider.callback();
createServer(async (request, response) => {
  if (!request.url.startsWith("/interaction/")) {
    answer(request, response);
    return;
  }
  const interaction = await provider.interactionDetails(request, response);
  const result = interaction.prompt.name === "login" ? { login: { accountId: subject } } : await consented(interaction);
  await provider.interactionFinished(request, response, result);
}).listen(port, "127.0.0.1", () => console.log("listening"));
