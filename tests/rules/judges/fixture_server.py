"""A server with the tools, resources and prompts that the conformance suite asks for by name, for our transport.

It belongs to the tests alone: the service offers nothing of it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.server import CacheHint, Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    Tool,
    UnsubscribeRequestParams,
)

from tests.rules.judges import fixture_content as content
from tests.rules.judges import fixture_rounds as rounds
from tests.rules.judges.fixture_content import Context

_NO_ARGUMENTS: Final = {"type": "object", "additionalProperties": False}
_CACHED: Final = CacheHint(ttl_ms=1_000, scope="public")
_LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")


async def _sampled(context: Context) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say something."))
    result = await context.session.create_message([message], max_tokens=10)
    return f"The model said: {result.model_dump_json()}"


async def _elicited(context: Context) -> str:
    form = rounds.ask("Please fill this in.", username="string", email="string").params
    result = await context.session.elicit_form(form.message, form.model_dump()["requested_schema"])
    return f"The user said: {result.model_dump_json()}"


# The last four ask the client something while the call goes on, which a stateless server can't.
_STREAMING: Final[dict[str, Callable[[Context], Awaitable[str]]]] = {
    "test_tool_with_progress": content.with_progress,
    "test_tool_with_logging": content.with_logging,
    "test_logging_tool": content.with_logging,
    "test_sampling": _sampled,
    "test_elicitation": _elicited,
    "test_elicitation_sep1034_defaults": _elicited,
    "test_elicitation_sep1330_enums": _elicited,
}
_NAMES: Final = (*content.CONTENT, "test_error_handling", *_STREAMING, *rounds.TOOLS)
_TOOLS: Final = [Tool(name=name, description="A fixture.", input_schema=_NO_ARGUMENTS) for name in _NAMES]
_PROMPTS: Final = [*content.PROMPTS, *(Prompt(name=name, description="A fixture.") for name in rounds.PROMPTS)]


async def _list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=_TOOLS)


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    name = params.name
    if name in content.CONTENT:
        return CallToolResult(content=content.CONTENT[name])
    if name == "test_error_handling":
        return _text_result("This tool intentionally returns an error for testing", is_error=True)
    if name in _STREAMING:
        return _text_result(await _STREAMING[name](context))
    if name in rounds.TOOLS:
        reached = rounds.advance(name, rounds.TOOLS[name], params, context.session.client_capabilities)
        return _text_result(reached) if isinstance(reached, str) else reached
    raise MCPError(code=INVALID_PARAMS, message="There is no such tool.")


def _text_result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


async def _list_resources(_: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
    return ListResourcesResult(resources=content.RESOURCES)


async def _list_templates(_: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=content.TEMPLATES)


async def _read(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    return content.read(params.uri)


async def _subscribe(_: Context, __: SubscribeRequestParams) -> EmptyResult:
    return EmptyResult()


async def _unsubscribe(_: Context, __: UnsubscribeRequestParams) -> EmptyResult:
    return EmptyResult()


async def _set_level(_: Context, __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


async def _list_prompts(_: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
    return ListPromptsResult(prompts=_PROMPTS)


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    if params.name not in rounds.PROMPTS:
        return content.prompt(params.name, params.arguments or {})
    reached = rounds.advance(params.name, rounds.PROMPTS[params.name], params, context.session.client_capabilities)
    if isinstance(reached, InputRequiredResult):
        return reached
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=reached))])


async def _complete(_: Context, __: CompleteRequestParams) -> CompleteResult:
    return CompleteResult(completion=Completion(values=["paris", "park", "party"], total=3, has_more=False))


def build_fixture_server() -> Server[Any]:
    """Make the server."""
    schemas = {tool.name: tool.input_schema for tool in _TOOLS}
    return Server(
        "conformance-fixture",
        version="1",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_set_logging_level=_set_level,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
        get_tool_input_schema=schemas.get,
        cache_hints=dict.fromkeys(_LISTS, _CACHED),
    )
