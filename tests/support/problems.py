"""Problem documents as the interface has them (E1)."""

from typing import Any


def problem(status: int, code: str, detail: str, *errors: tuple[str, str], title: str | None = None) -> dict[str, Any]:
    """A whole problem document; the title is the code in words unless given.

    `errors` are field and message of each wrong field; a document without any has no `errors`.
    """
    document = {
        "type": f"urn:shop-directory:problem:{code}",
        "title": title or code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
    }
    listed = [{"field": field, "message": message} for field, message in errors]
    return document | ({"errors": listed} if listed else {})


def invalid_input(*errors: tuple[str, str]) -> dict[str, Any]:
    """The document for wrong fields, whose detail names each of them."""
    return problem(400, "invalid_input", " ".join(f"{field} {message}." for field, message in errors), *errors)
