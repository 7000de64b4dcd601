// Measured facts about a shop's site as a timeline, each with its source and time, and no verdict.

import { tokenHint } from "./account.js";
import { call, hasToken } from "./api.js";
import { bdi, make } from "./elements.js";
import { countryName, dateTime, day, joined, words } from "./format.js";

const REGISTERED = "domain_registered_at";
const KINDS = {
  tls_issuer: "Certificate issued by", tls_grade: "TLS configuration", hosting_isp: "Hosted by",
  hosting_country: "Hosted in", [REGISTERED]: "Domain registered", registrar: "Registrar",
  payment_methods: "Ways to pay",
};
const REASONS = {
  not_collected_yet: "has not been looked at yet",
  pipeline_gap: "was looked at, without a usable result",
};

export async function trust(input, signal) {
  if (!hasToken()) {
    return ["missing", tokenHint("With a token, this shows who certified the shop’s site, where it is hosted, since when its " +
      "domain is registered and how one can pay, each with its source and time.")];
  }
  const { status, signals, signal_coverage: coverage } = await call("get_trust", input, signal);
  const gaps = make("dl", { class: "facts gaps" }, coverage.missing.map(({ kind, reason }) =>
    make("div", {}, make("dt", {}, KINDS[kind] ?? kind), make("dd", { class: "missing" }, REASONS[reason] ?? reason))));
  if (status === "no_signals_collected") {
    return ["missing", make("p", { class: "missing" }, "Nothing has been measured. That is no verdict."), gaps];
  }
  // A registration has a time of its own; all other facts have that of their check.
  const time = ({ kind, value, checked_at: at }) => Date.parse(kind === REGISTERED ? value : at) || 0;
  return ["ok", make("ol", { class: "timeline" }, signals.toSorted((one, other) => time(other) - time(one)).map(measured)),
    coverage.missing.length ? make("h3", {}, "Not known") : "", coverage.missing.length ? gaps : "",
    make("p", { class: "small" }, "Each fact stands for itself; what is missing says nothing about the shop.")];
}

function measured({ kind, value, source, checked_at: at }) {
  return make("li", { "data-signal": kind },
    make("p", {}, make("span", { class: "kind" }, KINDS[kind] ?? kind), " ", make("span", { class: "name" }, valueOf(kind, value))),
    make("p", { class: "small" }, "Seen by ", words(source), ", ", dateTime(at)));
}

function valueOf(kind, value) {
  if (Array.isArray(value)) return joined(value.map(words));
  if (kind === "hosting_country") return bdi(countryName(value));
  return kind === REGISTERED ? day(value) : bdi(value);
}
