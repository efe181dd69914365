"""A plugin for Datasette: the tools that the conformance suite calls, served beside ours."""

import base64

from datasette import hookimpl
from mcp.server.mcpserver import Audio, Image
from mcp.types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents

# One red pixel, and eight samples of silence.
_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
_WAV = (
    b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\x08\0\0\0" + b"\x80" * 8
)


def _resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


@hookimpl
def register_mcp_tools(datasette, mcp):
    @mcp.tool()
    def test_simple_text() -> TextContent:
        """A text."""
        return TextContent(type="text", text="This is a simple text response for testing.")

    @mcp.tool()
    def test_image_content() -> Image:
        """An image."""
        return Image(data=_PNG, format="png")

    @mcp.tool()
    def test_audio_content() -> Audio:
        """A sound."""
        return Audio(data=_WAV, format="wav")

    @mcp.tool()
    def test_embedded_resource() -> EmbeddedResource:
        """A resource."""
        text = "This is an embedded resource content."
        return _resource("test://embedded-resource", "text/plain", text)

    @mcp.tool()
    def test_multiple_content_types() -> CallToolResult:
        """Text, image and resource."""
        text = TextContent(type="text", text="Multiple content types test:")
        image = Image(data=_PNG, format="png").to_image_content()
        uri = "test://mixed-content-resource"
        resource = _resource(uri, "application/json", '{"test":"data","value":123}')
        return CallToolResult(content=[text, image, resource])

    @mcp.tool()
    def test_error_handling() -> CallToolResult:
        """An error."""
        text = "This tool intentionally returns an error for testing"
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
