"""What the conformance suite wants to read under fixed names: content of every kind, resources, prompts."""

import asyncio
from typing import Any, Final

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

Context = ServerRequestContext[Any, Any]

# One black pixel, and one silent sample of sound.
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
_WAV: Final = "UklGRiUAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACA"
_IMAGE: Final = ImageContent(type="image", data=_PNG, mime_type="image/png")


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _embedded(uri: str, media_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=media_type, text=text))


CONTENT: Final[dict[str, list[ContentBlock]]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_IMAGE],
    "test_audio_content": [AudioContent(type="audio", data=_WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _IMAGE,
        _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}
RESOURCES: Final = [
    Resource(uri="test://static-text", name="static-text", description="A text.", mime_type="text/plain"),
    Resource(uri="test://static-binary", name="static-binary", description="An image.", mime_type="image/png"),
    Resource(uri="test://watched-resource", name="watched-resource", description="A text.", mime_type="text/plain"),
]
TEMPLATES: Final = [
    ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", description="By id.", mime_type="application/json"
    )
]
PROMPTS: Final = [
    Prompt(name="test_simple_prompt", description="One message."),
    Prompt(
        name="test_prompt_with_arguments",
        description="Repeats its arguments.",
        arguments=[PromptArgument(name="arg1", required=True), PromptArgument(name="arg2", required=True)],
    ),
    Prompt(
        name="test_prompt_with_embedded_resource",
        description="Holds a resource.",
        arguments=[PromptArgument(name="resourceUri", required=True)],
    ),
    Prompt(name="test_prompt_with_image", description="Holds an image."),
]


def read(uri: str) -> ReadResourceResult:
    """The contents of a resource.

    Raises:
        MCPError: there is none.
    """
    if uri == "test://static-binary":
        return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=_PNG)])
    number = uri.removeprefix("test://template/").removesuffix("/data")
    texts = {
        "test://static-text": ("text/plain", "This is the content of the static text resource."),
        "test://watched-resource": ("text/plain", "It never changes."),
        f"test://template/{number}/data": (
            "application/json",
            f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}',
        ),
    }
    if uri not in texts:
        raise MCPError(code=INVALID_PARAMS, message="There is no such resource.", data={"uri": uri})
    media_type, text = texts[uri]
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=media_type, text=text)])


def prompt(name: str, arguments: dict[str, str]) -> GetPromptResult:
    """The messages of a prompt.

    Raises:
        MCPError: there is none.
    """
    match name:
        case "test_simple_prompt":
            blocks: list[ContentBlock] = [_text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            blocks = [_text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = _embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
            blocks = [resource, _text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            blocks = [_IMAGE, _text("Please analyze the image above.")]
        case _:
            raise MCPError(code=INVALID_PARAMS, message="There is no such prompt.")
    return GetPromptResult(messages=[PromptMessage(role="user", content=block) for block in blocks])


async def with_progress(context: Context) -> str:
    """Three steps, each of them reported."""
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await asyncio.sleep(0.05)
    return "Done in three steps."


async def with_logging(context: Context) -> str:
    """Three steps, each of them logged."""
    for step in ("started", "processing", "completed"):
        await context.session.send_log_message("info", f"Tool execution {step}", related_request_id=context.request_id)
        await asyncio.sleep(0.05)
    return "Done, with three log messages."
