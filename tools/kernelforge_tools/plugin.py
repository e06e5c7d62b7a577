"""The skill and the agent of the plugin: the prompts, under the heads that Claude Code reads.

Run as a module it writes them into the folder that it is given.
"""

import sys
from pathlib import Path

from kernelforge_tools.prompts import optimize_card, optimize_model
from kernelforge_tools.registry import tools

PREFIX = "mcp__plugin_kernelforge_kernelforge__"  # how Claude Code names the tools of this plugin
MADE = "<!-- Made from tools/kernelforge_tools/guide.md; `make plugin` writes it anew. -->"


def texts() -> dict[str, str]:
    """Every file that is made, by its path below the plugin."""
    return {
        "skills/optimize-model/SKILL.md": _skill(),
        "agents/kernel-writer.md": _agent(),
    }


def _skill() -> str:
    # Only what looks things up may run unasked: a model is Python, and a candidate native code.
    reading = [
        tool.name
        for tool in tools()
        if tool.annotations and tool.annotations.read_only_hint and tool.annotations.idempotent_hint
    ]
    head = {
        "name": "optimize-model",
        "description": (
            "Makes a PyTorch model faster with kernels that are judged and timed against eager. "
            "Use when asked to speed up a PyTorch model, operator, module or CUDA kernel, or to "
            "find out what holds one back."
        ),
        "argument-hint": "FILE.py with make_model() and make_inputs()",
        "allowed-tools": ", ".join(PREFIX + name for name in reading),
    }
    return _file(head, "# Make a model faster", optimize_model("the model that was asked for"))


def _agent() -> str:
    head = {
        "name": "kernel-writer",
        "description": (
            "Writes kernels for one card of a capture until none beats the best, and reports the "
            "best node. Use one for each card when several are worth it: every one has a lease of "
            "its own."
        ),
    }
    return _file(head, "# Write kernels for one card", optimize_card("the card that was named"))


def _file(head: dict[str, str], title: str, body: str) -> str:
    lines = [f"{key}: {value}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", MADE, "", title, "", body, ""])


def write(folder: Path) -> None:
    """Write every file that is made."""
    for name, text in texts().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
