"""Prompts that a person picks in a client: the guide's own text, with what to do it on."""

from collections.abc import Callable

from mcp.server import MCPServer

from kernelforge_engine.engine import Engine
from kernelforge_tools import guide


def add_prompts(server: MCPServer[Engine]) -> None:
    """Register every prompt."""
    prompts: tuple[Callable[..., str], ...] = (
        optimize_model,
        optimize_card,
        explain_result,
        triage_failure,
    )
    for prompt in prompts:
        server.prompt()(prompt)


def optimize_model(model: str) -> str:
    """Make a PyTorch model faster, from its file to an exported cast."""
    return (
        f"{guide.LOOP.strip()}\n\n"
        f"Do this for {model}. Work on the cards with the most gain first, and stop where further "
        "candidates do not beat the best. In the end export a cast, measure the model with it, and "
        "report the speed-up with its interval, the drift, and what was not worth it."
    )


def optimize_card(card_id: str) -> str:
    """Write kernels for one operator or region."""
    return (
        f"{guide.LOOP.strip()}\n\n"
        f"Begin at step 3, with {card_id} alone. Report the best node, its speed-up with the "
        "interval that benchmark gave, and what you tried that failed."
    )


def explain_result(node_id: str) -> str:
    """Say what the evidence of a node is worth."""
    return (
        f'Call get_node(node_id="{node_id}", '
        'sections=["source", "verdict", "timing", "lineage"]). Explain to an engineer what the '
        "kernel does differently from eager, on what it was judged, how it was timed and against "
        "what, how sure the result is, and for which calls it holds. Claim nothing that is not in "
        "the answer."
    )


def triage_failure(attempt_id: str) -> str:
    """Find out why a candidate failed and mend it."""
    return (
        f'Call get_node(node_id="{attempt_id}"). Name the cause in one sentence, from its status, '
        "its reason, what is explained beside it and its log; change as little of the source as "
        "mends it; submit that with compile_and_validate for the same variant_id, saying in `note` "
        "what was wrong. Repeat until it is valid, or until the idea itself is what fails: then "
        "say so."
    )
