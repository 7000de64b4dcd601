// Measured facts about a shop's site as a timeline, each with its source and time, and no verdict.

import { tokenHint } from "./account.js";
import { call, hasToken } from "./api.js";
import { bdi, make } from "./elements.js";
import { countryName, dateTime, day, joined, words } from "./format.js";
import { phrase, t } from "./texts.js";

const REGISTERED = "domain_registered_at";
const KINDS = {
  tls_issuer: t("tls_issuer"), tls_grade: t("tls_grade"), hosting_isp: t("hosting_isp"), hosting_country: t("hosting_country"),
  [REGISTERED]: t("domain_registered_at"), registrar: t("registrar"), payment_methods: t("payment_methods"),
};
const REASONS = { not_collected_yet: t("not_collected_yet"), pipeline_gap: t("pipeline_gap") };

export async function trust(input, signal) {
  if (!hasToken()) {
    return ["missing", tokenHint(t("trust_with_token"))];
  }
  const { status, signals, signal_coverage: coverage } = await call("get_trust", input, signal);
  const gaps = make("dl", { class: "facts gaps" }, coverage.missing.map(({ kind, reason }) =>
    make("div", {}, make("dt", {}, KINDS[kind] ?? kind), make("dd", { class: "missing" }, REASONS[reason] ?? reason))));
  if (status === "no_signals_collected") {
    return ["missing", make("p", { class: "missing" }, t("trust_none")), gaps];
  }
  // A registration has a time of its own; all other facts have that of their check.
  const time = ({ kind, value, checked_at: at }) => Date.parse(kind === REGISTERED ? value : at) || 0;
  return ["ok", make("ol", { class: "timeline" }, signals.toSorted((one, other) => time(other) - time(one)).map(measured)),
    coverage.missing.length ? make("h3", {}, t("trust_not_known")) : "", coverage.missing.length ? gaps : "",
    make("p", { class: "small" }, t("trust_each"))];
}

function measured({ kind, value, source, checked_at: at }) {
  return make("li", { "data-signal": kind },
    make("p", {}, make("span", { class: "kind" }, KINDS[kind] ?? kind), " ", make("span", { class: "name" }, valueOf(kind, value))),
    make("p", { class: "small" }, phrase("trust_seen", { source: words(source), time: dateTime(at) })));
}

function valueOf(kind, value) {
  if (Array.isArray(value)) return joined(value.map(words));
  if (kind === "hosting_country") return bdi(countryName(value));
  return kind === REGISTERED ? day(value) : bdi(value);
}
