// A sentence for each kind of failure, with a button to try again. A failure is never shown as an empty list.

import { make } from "./elements.js";
import { phrase, t } from "./texts.js";

const UNKNOWN = {
  shop_not_found: t("shop_not_found"),
  offer_not_found: t("offer_not_found"),
  no_valid_checkout_url: t("no_valid_checkout_url"),
};

const BROKEN = {
  unreachable: t("unreachable"),
  late: t("late"),
  unreadable: t("unreadable"),
};

// These are answers, which a retry would not change.
const isAnswer = ({ status }) => [400, 401, 404, 413].includes(status);

export const sentence = (failure) => (isAnswer(failure) ? refusal(failure)
  : t("failed", { problem: breakdown(failure) }));

function refusal({ status, code }) {
  switch (status) {
    case 401: return code === "token_invalid" ? t("token_invalid") : t("token_required");
    case 404: return UNKNOWN[code] ?? t("nothing_there");
    default: return code === "unknown_category" ? t("unknown_category") : t("wrong_question");
  }
}

function breakdown({ kind, status, code }) {
  if (kind !== "refused") return BROKEN[kind] ?? t("page_failed");
  if (status === 429) return t("too_many");
  if (status !== 503) return t("directory_failed");
  if (code === "not_ready") return t("no_index_yet");
  return code === "overloaded" ? t("busy") : t("no_look_up");
}

// The service's detail about wrong input. The details of other errors are meant for programs.
function detail({ status, code, detail: text }) {
  return [400, 413].includes(status) && code !== "unknown_category" && text ? make("p", { lang: "en" }, text) : null;
}

export function problem(failure, again, { button = {} } = {}) {
  const origin = failure.status >= 500 && failure.requestId
    ? make("p", { class: "small" }, phrase("tell_operator", { number: make("code", {}, failure.requestId) }))
    : null;
  return make("div", { class: "problem" },
    make("p", { class: "sentence" }, sentence(failure)),
    detail(failure),
    isAnswer(failure) ? null : retry(failure.wait ?? 0, again, button),
    origin);
}

// The button counts down the time that the service asks to wait.
function retry(wait, again, properties) {
  const button = make("button", { type: "button", ...properties, onclick: again });
  const until = Date.now() + wait * 1000;
  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? t("try_again_in", { count: left }) : t("try_again");
    if (left > 0) setTimeout(tick, Math.min(250, until - Date.now()));
  };
  tick();
  return button;
}
