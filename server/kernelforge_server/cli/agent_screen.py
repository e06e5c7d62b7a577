"""What `kernelforge agent` shows: lines for people, or one document or a stream for programs."""

import json
from collections.abc import Callable
from typing import Any

import typer

from kernelforge_server.cli.agent_options import Output

Json = dict[str, Any]
UNSHOWN = ("raw",)  # a provider's own form of what is there in plain words
MAX_CHARS = 160


def listener(output: Output) -> Callable[[Json], None]:
    """Whoever is told what happens."""
    return {Output.TEXT: _line, Output.JSON: _silent, Output.STREAM_JSON: _stream}[output]


def show_result(output: Output, document: Json) -> None:
    """How a run ended; a stream has ended with it already."""
    if output is Output.JSON:
        _stream({"type": "result", **document})
    if output is Output.TEXT:
        typer.echo(document["report"] or "(no report)")
        typer.echo(_summary(document), err=True)


def show_failure(output: Output, why: str, code: int) -> None:
    """Why a run could not begin."""
    if output is Output.TEXT:
        typer.echo(f"kernelforge: {why}", err=True)
    else:
        _stream({"type": "result", "outcome": "failed", "exit_code": code, "errors": [why]})


def show_plan(output: Output, plan: Json) -> None:
    """What a run would begin with."""
    if output is not Output.TEXT:
        _stream({"type": "plan", **plan})
        return
    for title, text in (("System", plan["system"]), *(("Task", w) for w in plan["first_words"])):
        typer.echo(f"## {title}\n\n{text}\n")
    typer.echo(f"## Tools\n\n{', '.join(plan['tools'])}\n")
    tokens, dollars = plan["first_input_tokens_estimated"], plan["first_input_dollars"]
    typer.echo(f"The first request holds about {tokens} tokens; dollars: {dollars}.")


def _silent(_: Json) -> None:
    pass


def _stream(event: Json) -> None:
    kept = {name: value for name, value in event.items() if name not in UNSHOWN}
    typer.echo(json.dumps(kept, ensure_ascii=False))


def _line(event: Json) -> None:
    words = _words(event)
    if words:
        typer.echo(f"[{event['author']}] {words}", err=True)


def _words(event: Json) -> str:
    match event["type"]:
        case "message":
            return _short(event["text"])
        case "tool_use":
            return f"> {event['tool']}"
        case "tool_result":
            return f"< {event['status']}: {_short(_said(event))}"
        case "api_retry":
            return f"again in {event['after_s']:g} s: {_short(event['why'])}"
        case "budget":
            return f"the budget is used: {event['limit']}"
        case "cost" if event["error"]:
            return f"not counted: {_short(event['error'])}"
        case "error":
            return str(event["text"])
    return ""


def _said(event: Json) -> str:
    return str((event["answer"] or {}).get("summary") or event["error"])


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_CHARS else f"{words[:MAX_CHARS]}..."


def _summary(document: Json) -> str:
    faster = [f"{node} {found['speedup']}x" for node, found in document["faster"].items()]
    parts = [
        f"{document['outcome']}: {document['turns']} turns",
        f"{document['candidates']} candidates, {document['valid']} valid",
        f"faster: {', '.join(faster) or 'none'}",
        f"dollars: {document['dollars']}",
        f"session {document['session']}",
    ]
    return "; ".join([*parts, *document["errors"]])
