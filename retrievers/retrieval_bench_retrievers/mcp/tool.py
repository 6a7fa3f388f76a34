"""The definition of a tool: what it takes, what a config of it would say, and which of its
arguments go into headers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench_retrievers.http.answer import shown
from retrieval_bench_retrievers.mcp.messages import WHERE

_LISTED, _SAID = 8, 80
_SEARCHES = re.compile("search|find|query|retriev|look_?up|recall|ask", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][\w.-]*")
_QUERY = ("query", "q", "text", "search", "question", "pattern", "keywords", "term", "prompt")
_MOST = ("limit", "k", "top_k", "topk", "n", "count", "max_results", "num_results", "size")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_IN_HEADERS = ("string", "integer", "boolean")


def lines_to_paste(tools: Sequence[Mapping[str, Any]]) -> str:
    """Write down what a config says for each tool that looks like a search, or where none does for
    all, with its arguments; of the others their names, for a tool may write or delete."""
    searches = [tool for tool in tools if _SEARCHES.search(str(tool.get("name")))]
    listed = (searches or list(tools))[:_LISTED]
    lines = []
    for tool in listed:
        name = str(tool.get("name"))
        lines.append(f"    tool: {name if _NAME.fullmatch(name) else json.dumps(name)}")
        if said := shown(str(tool.get("description") or ""))[:_SAID]:
            lines[-1] += f"  # {said}"
        lines.append(f"    arguments: {_arguments_to_paste(tool)}")
    others = ", ".join(str(tool.get("name")) for tool in tools if tool not in listed)
    return "\n".join([*lines, *([f"    (it also offers {others})"] if others else [])])


def tool_named(name: str | None, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The tool of this name.

    Raises:
        ConfigError: there is none, or none is named.
    """
    names = [str(tool.get("name")) for tool in tools]
    if name in names:
        return tools[names.index(name)]
    given = "no tool is named" if name is None else f"the server has no tool {name!r}"
    if not tools:
        raise ConfigError(f"{given}, and it offers none", where=f"{WHERE}, tool")
    near = f" ({near_names(name, names)})" if name is not None else ""
    raise ConfigError(
        given,
        where=f"{WHERE}, tool",
        accepted=f"one of those that the server offers{near}",
        fix=f"paste the lines of one under `params:`, and correct them\n{lines_to_paste(tools)}",
    )


def check_arguments(tool: Mapping[str, Any], given: Mapping[str, Any] | None) -> None:
    """Refuse a call that the tool's definition does not allow.

    Args:
        given: the arguments, with placeholders; None = none are.

    Raises:
        ConfigError: an argument that the tool does not have, or one that it needs is not there.
    """
    schema = mapping(tool.get("inputSchema"))
    properties, required = mapping(schema.get("properties")), schema.get("required")
    names = given or {}
    unknown = [
        name for name in names if name not in properties and not schema.get("additionalProperties")
    ]
    absent = [name for name in required or () if name not in names] if required else []
    if given is not None and not unknown and not absent:
        return
    faults = ["no arguments are given"] if given is None else []
    faults += [f"no argument {name!r} in the tool" for name in unknown]
    faults += [f"the tool needs {name!r}" for name in absent]
    raise ConfigError(
        "; ".join(faults),
        where=f"{WHERE}, arguments of {tool.get('name')}",
        accepted=", ".join(map(str, properties)) or "no arguments",
        fix=f"for example arguments: {_arguments_to_paste(tool)}",
    )


def definition(tool: Mapping[str, Any]) -> str:
    """Join what a model reads of a tool before it calls it."""
    read = {name: tool.get(name) for name in ("name", "description", "inputSchema")}
    return json.dumps(read, ensure_ascii=False, separators=(",", ":"))


def header_paths(tool: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Which arguments go into headers ``Mcp-Param-*`` as well: the path of each -> its header.

    Raises:
        ConfigError: the definition names what is no header, or names it where it cannot be read.
    """
    paths: dict[tuple[str, ...], str] = {}
    for path, schema in _annotated(tool.get("inputSchema"), ()):
        name = schema["x-mcp-header"]
        fault = ""
        if path is None:
            fault = "stands where no argument is certain to be"
        elif not isinstance(name, str) or not _TOKEN.fullmatch(name):
            fault = "is no name of a header"
        elif schema.get("type") not in _IN_HEADERS:
            fault = f"belongs to a value of the type {schema.get('type')!r}"
        elif f"mcp-param-{name}".lower() in {known.lower() for known in paths.values()}:
            fault = "is there twice"
        if fault or path is None:
            raise ConfigError(
                f"the definition of the tool {tool.get('name')!r} has x-mcp-header {name!r}, which "
                f"{fault}",
                where=WHERE,
                accepted="a distinct name of a header, at a text, a whole number or a truth value "
                "among `properties`",
                fix="correct the server, or use it over stdio",
            )
        paths[path] = f"Mcp-Param-{name}"
    return paths


def header_values(
    paths: Mapping[tuple[str, ...], str], arguments: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """The headers that go with ``arguments``."""
    for path, header in paths.items():
        value: Any = arguments
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            yield header, "true" if value else "false"
        elif isinstance(value, str | int):
            yield header, header_value(str(value))


def header_value(text: str) -> str:
    """``text`` as a header carries it: as it is where that is safe, otherwise in base64."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _annotated(
    schema: Any, path: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Schemas with the key ``x-mcp-header``, and the path of properties to each; None where other
    keys of a schema lie on the way."""
    if isinstance(schema, list):
        for item in schema:
            yield from _annotated(item, None)
    if not isinstance(schema, Mapping):
        return
    if "x-mcp-header" in schema:
        yield path or None, schema
    for key, inner in schema.items():
        if key == "properties" and isinstance(inner, Mapping):
            for name, argument in inner.items():
                yield from _annotated(argument, None if path is None else (*path, name))
        elif key not in ("default", "examples", "const", "enum"):
            yield from _annotated(inner, None)


def _arguments_to_paste(tool: Mapping[str, Any]) -> str:
    schema = mapping(tool.get("inputSchema"))
    properties = mapping(schema.get("properties"))
    required = schema.get("required") or ()
    texts = [name for name in properties if _type(properties[name]) == "string"]
    query = next((name for name in _QUERY if name in properties), None)
    if query is None:
        query = next((name for name in texts if name in required), texts[0] if texts else None)
    most = next((name for name in _MOST if name in properties), None)
    values = {query: '"{text}"', most: '"{k}"'}
    named = [name for name in properties if name in (query, most) or name in required]
    return "{" + ", ".join(f"{name}: {values.get(name, '...')}" for name in named) + "}"


def _type(schema: Any) -> Any:
    return mapping(schema).get("type")


def mapping(given: Any) -> Mapping[str, Any]:
    """``given``, or an empty mapping where it is none."""
    return given if isinstance(given, Mapping) else {}
