"""Pages of the API in HTML: the page at `/`, and OpenAPI descriptions. They have no script. Pure."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #17222b; --soft: #5a6b78; --line: #dbe3e8; --card: #fff; --paper: #f6f8f9;
  --accent: #0b7285; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4ebf0; --soft: #93a4b1; --line: #2a3843; --card: #182129; --paper: #10161b; --accent: #4fc3d9; } }
body { margin: 0 auto; max-width: 900px; padding: 20px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1, h2, summary, li { overflow-wrap: anywhere; }
h1 small, .soft { color: var(--soft); font-size: 0.85em; font-weight: 400; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 0.4rem; } h3 { font-size: 0.9rem; margin: 0.8rem 0 0.2rem; }
a { color: var(--accent); }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 6px 0;
  padding: 6px 12px; }
summary { cursor: pointer; } summary b { display: inline-block; min-width: 3.2em; color: var(--accent); }
code, pre { font-family: ui-monospace, Menlo, "DejaVu Sans Mono", monospace; font-size: 0.88em; }
pre { background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; overflow: auto;
  max-height: 26rem; }
td { padding: 2px 14px 2px 0; vertical-align: top; }
"""

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-"
        + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
        + "'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Vary": "Accept",
}
"""The headers of each of these pages."""


def root_page(name: str, version: str, dashboard: str, links: Sequence[tuple[str, str]]) -> str:
    """The page at `/`; `dashboard` is its URL, "" without one, and `links` are models with the pages about them."""
    seen = f'<a href="{escape(dashboard)}">{escape(dashboard)}</a>' if dashboard else "not served"
    return _page(
        name,
        f"<h1>{escape(name)} <small>{escape(version)}</small></h1>"
        "<p>An inference server with the Open Inference Protocol (KServe v2).</p><ul>"
        f"<li>Dashboard: {seen}</li>"
        '<li>API: <a href="docs">docs</a>, <a href="openapi.json">openapi.json</a></li>'
        '<li>Server: <a href="v2">v2</a>, <a href="v2/models/stats">v2/models/stats</a></li></ul>'
        + (_models(links) or "<p>No model is ready.</p>"),
    )


def api_page(document: Mapping[str, Any], source: str, links: Sequence[tuple[str, str]]) -> str:
    """The page of an OpenAPI document, which `source` links to; `links` are the texts and targets of others."""
    parts = [f"<h1>{escape(document['info']['title'])} <small>{escape(document['info']['version'])}</small></h1>"]
    parts.append(f"<p>{escape(document['info']['description'])}. <a href={_quoted(source)}>openapi.json</a></p>")
    parts.append(_models(links))
    schemas = document["components"]["schemas"]
    for tag, operations in _by_tag(document).items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += ["".join(_operation(method, path, each, schemas)) for method, path, each in operations]
    return _page(document["info"]["title"], "\n".join(parts))


def _models(links: Sequence[tuple[str, str]]) -> str:
    """A list of models that links to their pages; "" for none."""
    items = "".join(f"<li><a href={_quoted(target)}>{escape(text)}</a></li>" for text, target in links)
    return f"<h2>Models</h2><ul>{items}</ul>" if items else ""


def _by_tag(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    tags: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    for operations in tags.values():
        operations.sort(key=lambda each: not each[1].endswith(("/infer", "/generate")))  # what most readers look for
    return {tag: tags[tag] for tag in sorted(tags, key=lambda tag: tag != "inference")}


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    yield f"<details><summary><b>{method}</b> <code>{escape(path)}</code> {escape(operation['summary'])}</summary>"
    yield f"<p class=soft>operationId: <code>{escape(operation['operationId'])}</code></p>"
    if parameters := operation.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code><td>{each['in']}<td>{escape(each.get('description', ''))}"
            for each in parameters
        )
        yield f"<h3>Parameters</h3><table>{rows}</table>"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        if "example" in content:
            yield f"<h3>Example</h3><pre>{escape(_curl(path, kind, content['example']))}</pre>"
        yield f"<h3>Body: {escape(kind)}</h3>{_schema(content['schema'], schemas)}"
    for status, response in operation["responses"].items():
        yield f"<h3>{status} <span class=soft>{escape(response['description'])}</span></h3>"
        if status == "200":
            for kind, content in response.get("content", {}).items():
                yield f"<p class=soft>{escape(kind)}</p>{_schema(content['schema'], schemas)}"
    yield "</details>"


def _curl(path: str, kind: str, example: Any) -> str:
    body = json.dumps(example, ensure_ascii=False).replace("'", "'\\''")
    return f"curl -s localhost:8000{path} -H 'Content-Type: {kind}' -d '{body}'"


def _schema(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """A schema as JSON, one level of its references replaced."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return f"<pre>{escape(json.dumps(schemas.get(name, schema), indent=1, ensure_ascii=False))}</pre>"


def _quoted(url: str) -> str:
    return f'"{escape(url)}"'


def _page(title: str, content: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{content}</body></html>\n"
    )
