// What was measured of a shop's site: single facts, each with its source and time. No verdict is made of them.

import { call, hasToken } from "./api.js";
import { make, said } from "./elements.js";
import { countryName, day, moment } from "./words.js";

const KINDS = {
  tls_issuer: "Certificate issued by", tls_grade: "TLS configuration", hosting_isp: "Hosted by",
  hosting_country: "Hosted in", domain_registered_at: "Domain registered", registrar: "Registrar",
  payment_methods: "Ways to pay",
};
const REASONS = {
  not_collected_yet: "has not been looked at yet",
  pipeline_gap: "was looked at, without a usable result",
};

export async function trust(asked, signal) {
  if (!hasToken()) {
    return ["missing", make("p", { class: "missing" },
      "What was measured of this shop’s site is shown with an API token. Enter one at the top of the page; the operator of this directory issues it.")];
  }
  const { status, signals, signal_coverage: coverage } = await call("get_trust", asked, signal);
  const gaps = make("dl", { class: "facts gaps" }, coverage.missing.map(({ kind, reason }) =>
    make("div", {}, make("dt", {}, KINDS[kind] ?? kind), make("dd", { class: "missing" }, REASONS[reason] ?? reason))));
  if (status === "no_signals_collected") {
    return ["missing", make("p", { class: "missing" }, "Nothing has been measured. That is no verdict."), gaps];
  }
  return ["ok", make("ul", { class: "signals" }, signals.map(measured)),
    coverage.missing.length ? make("h3", {}, "Not known") : "", coverage.missing.length ? gaps : "",
    make("p", { class: "small" }, "Each fact stands for itself; what is missing says nothing about the shop.")];
}

function measured({ kind, value, source, checked_at: at }) {
  return make("li", { "data-signal": kind },
    make("span", { class: "kind" }, KINDS[kind] ?? kind),
    make("span", { class: "name" }, shown(kind, value)),
    make("span", { class: "small" }, make("span", {}, "Source: ", said(source)), make("span", {}, "Checked ", moment(at))));
}

function shown(kind, value) {
  if (Array.isArray(value)) return value.flatMap((one, at) => (at ? [", ", said(one)] : [said(one)]));
  if (kind === "hosting_country") return said(countryName(value));
  if (kind === "domain_registered_at") return day(value);
  return said(value);
}
