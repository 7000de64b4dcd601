// Calls the public interface. Every error becomes a Failure with a kind, and never an empty answer.

const ROOT = new URL("../", import.meta.url);
const TIMEOUT = 15_000;

export class Failure extends Error {
  // kind: refused (the service says why), unreachable, late, unreadable, aborted
  constructor(kind, known = {}) {
    super(kind);
    Object.assign(this, { kind, status: 0, code: "", detail: "", wait: 0, requestId: "" }, known);
  }
}

let token = "";
export const useToken = (text) => { token = text; };
export const hasToken = () => token !== "";

export function suggest(text, country, signal) {
  const params = new URLSearchParams({ q: text, limit: "6" });
  if (country) params.set("country", country);
  return ask(`suggest?${params}`, {}, signal);
}

// What the server answered to make the first view, each for the first call of its tool; a token may change the answer.
const given = JSON.parse(document.getElementById("answers")?.textContent ?? "{}");

// Drops such answers, which another country changes.
export const forget = (...tools) => { for (const tool of tools) delete given[tool]; };

export async function call(tool, input, signal) {
  const { [tool]: answer } = given;
  delete given[tool];
  if (answer && !token) return { ...answer, asOf: given.asOf };
  const headers = { "content-type": "application/json" };
  return ask(`tool/${tool}`, { method: "POST", headers, body: JSON.stringify(input) }, signal);
}

async function ask(path, options, signal) {
  const headers = { accept: "application/json", ...options.headers, ...(token && { "x-api-token": token }) };
  try {
    const until = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]);
    return await read(await fetch(new URL(path, ROOT), { ...options, headers, signal: until, credentials: "omit" }));
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure({ AbortError: "aborted", TimeoutError: "late" }[error.name] ?? "unreachable");
  }
}

// Until when, by the clock of the page, more than half of the quota of reads is used.
let scarceUntil = 0;
// Whether reads may be used for what nobody has asked for yet.
export const hasPlenty = () => performance.now() > scarceUntil;

function note(headers) {
  const number = (name, key) => Number(new RegExp(`"reads".*;${key}=([0-9]+)`).exec(headers.get(name))?.[1]);
  const [limit, rest, seconds] = [number("ratelimit-policy", "q"), number("ratelimit", "r"), number("ratelimit", "t")];
  if (limit) scarceUntil = rest * 2 < limit ? performance.now() + seconds * 1000 : 0;
}

async function read(response) {
  note(response.headers);
  const text = await response.text();
  let answer = null;
  try { answer = JSON.parse(text); } catch { /* reported below */ }
  if (response.ok) {
    if (answer === null || typeof answer !== "object") throw new Failure("unreadable");
    return { ...answer, asOf: response.headers.get("x-data-as-of") };
  }
  throw new Failure("refused", {
    status: response.status,
    code: answer?.code ?? "",
    detail: answer?.detail ?? "",
    wait: seconds(response.headers.get("retry-after")),
    requestId: response.headers.get("x-request-id") ?? "",
  });
}

function seconds(retryAfter) {
  if (!retryAfter) return 0;
  const wait = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000;
  return wait > 0 ? Math.ceil(wait) : 0;
}
