// A sentence for each kind of failure, with a button to try again. A failure is never shown as an empty list.

import { make } from "./elements.js";
import { count } from "./format.js";

const UNKNOWN = {
  shop_not_found: "There is no such shop in the directory.",
  offer_not_found: "This offer is no longer in the directory.",
  no_valid_checkout_url: "This offer states no address that safely leads to its shop’s checkout.",
};

const BROKEN = {
  unreachable: "The directory can’t be reached. Is there a connection?",
  late: "The directory did not answer in time.",
  unreadable: "The directory’s answer could not be read.",
};

// These are answers, which a retry would not change.
const isAnswer = ({ status }) => [400, 401, 404, 413].includes(status);

export const sentence = (failure) => (isAnswer(failure) ? refusal(failure)
  : `${breakdown(failure)} This does not mean that there is nothing.`);

function refusal({ status, code }) {
  switch (status) {
    case 401: return code === "token_invalid"
      ? "This API token is invalid: unknown, revoked or expired."
      : "This needs an API token, which the operator issues.";
    case 404: return UNKNOWN[code] ?? "There is nothing here.";
    default: return code === "unknown_category" ? "There is no such category."
      : "The directory can’t answer this question as it was asked.";
  }
}

function breakdown({ kind, status, code }) {
  if (kind !== "refused") return BROKEN[kind] ?? "This page failed to show the answer.";
  if (status === 429) return "Too many questions came from here in a short time.";
  if (status !== 503) return "The directory failed.";
  if (code === "not_ready") return "This directory has no index yet.";
  return code === "overloaded" ? "The directory is busy."
    : "The directory can’t look this up at the moment.";
}

// The service's detail about wrong input. The details of other errors are meant for programs.
function detail({ status, code, detail: text }) {
  return [400, 413].includes(status) && code !== "unknown_category" && text ? make("p", {}, text) : null;
}

export function problem(failure, again, { button = {} } = {}) {
  const origin = failure.status >= 500 && failure.requestId
    ? make("p", { class: "small" }, "If it stays so, tell the operator this number: ", make("code", {}, failure.requestId))
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
    button.textContent = left > 0 ? `Try again in ${count(left, "second")}` : "Try again";
    if (left > 0) setTimeout(tick, Math.min(250, until - Date.now()));
  };
  tick();
  return button;
}
