"""The conformance suite's interactive tools: a result that asks the client for more, until all of it is there.

State goes to the client and comes back signed, so that the server stores none between the requests.
"""

import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Final

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequests,
    InputRequiredResult,
    InputResponseRequestParams,
    InputResponses,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

_KEY: Final = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class Interaction:
    """What is asked of the client, one step after the other.

    Attributes:
        steps: the requests of each step by their keys.
        signed: whether the step reached travels as state.
        partial: whether what the client can't answer is left out, instead of refused.
    """

    steps: tuple[InputRequests, ...]
    signed: bool = False
    partial: bool = False


def ask(message: str, **properties: str) -> ElicitRequest:
    """A form; `properties` are JSON types by name, all of them required."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str, max_tokens: int) -> CreateMessageRequest:
    """A completion by the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


_NAME: Final = ask("What is your name?", name="string")
_CAPITAL: Final = sample("What is the capital of France?", 100)

TOOLS: Final[dict[str, Interaction]] = {
    "test_input_required_result_elicitation": Interaction(({"user_name": _NAME},)),
    "test_input_required_result_sampling": Interaction(({"capital_question": _CAPITAL},)),
    "test_input_required_result_list_roots": Interaction(({"client_roots": ListRootsRequest()},)),
    "test_input_required_result_request_state": Interaction(
        ({"confirm": ask("Please confirm", ok="boolean")},), signed=True
    ),
    "test_input_required_result_multiple_inputs": Interaction(
        ({"user_name": _NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ListRootsRequest()},),
        signed=True,
    ),
    "test_input_required_result_multi_round": Interaction(
        (
            {"step1": ask("Step 1: What is your name?", name="string")},
            {"step2": ask("Step 2: What is your favorite color?", color="string")},
        ),
        signed=True,
    ),
    "test_input_required_result_tampered_state": Interaction(({"user_name": _NAME},), signed=True),
    "test_input_required_result_capabilities": Interaction(
        ({"user_name": _NAME, "capital_question": _CAPITAL},), partial=True
    ),
    "test_missing_capability": Interaction(({"capital_question": _CAPITAL},)),
    "test_streaming_elicitation": Interaction(({"user_name": _NAME},)),
}
PROMPTS: Final[dict[str, Interaction]] = {
    "test_input_required_result_prompt": Interaction(
        ({"user_context": ask("What context should the prompt use?", context="string")},)
    ),
}


def advance(
    name: str, interaction: Interaction, params: InputResponseRequestParams, able: ClientCapabilities | None
) -> InputRequiredResult | str:
    """Go on with an interaction, by the request's parameters, which hold the answers and the state.

    Returns what is asked next, or the closing text once everything is answered.

    Raises:
        MCPError: the state is not ours, or the client lacks a capability.
    """
    step = 0 if params.request_state is None else _opened(name, params.request_state)
    answers: InputResponses = params.input_responses or {}
    if interaction.steps[step].keys() <= answers.keys():
        step += 1
    if step == len(interaction.steps):
        shown = {key: answer.model_dump(mode="json") for key, answer in answers.items()}
        return f"state-ok, answered: {json.dumps(shown)}"
    requests = _answerable(interaction, interaction.steps[step], able or ClientCapabilities())
    return InputRequiredResult(
        input_requests=requests, request_state=_signed(name, step) if interaction.signed else None
    )


def _answerable(interaction: Interaction, requests: InputRequests, able: ClientCapabilities) -> InputRequests:
    lacking = {key: _capability(request) for key, request in requests.items() if _lacks(able, request)}
    if lacking and not interaction.partial:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="The tool needs a capability that the client does not declare.",
            data={"requiredCapabilities": {capability: {} for capability in lacking.values()}},
        )
    return {key: request for key, request in requests.items() if key not in lacking}


def _lacks(able: ClientCapabilities, request: InputRequest) -> bool:
    return getattr(able, _capability(request)) is None


def _capability(request: InputRequest) -> str:
    return request.method.partition("/")[0]


def _signed(name: str, step: int) -> str:
    state = f"{name}:{step}"
    return f"{state}:{_signature(state)}"


def _opened(name: str, token: str) -> int:
    state, _, signature = token.rpartition(":")
    owner, _, step = state.rpartition(":")
    if owner != name or not hmac.compare_digest(signature.encode(), _signature(state).encode()):
        raise MCPError(code=INVALID_PARAMS, message="The state is not one that this server gave out.")
    return int(step)


def _signature(state: str) -> str:
    return hmac.digest(_KEY, state.encode(), "sha256").hex()
