"""Every tool the server offers, in the order an agent meets them."""

from mcp.server.mcpserver.tools import Tool

from kernelforge_tools.cancel_job import cancel_job
from kernelforge_tools.forge_tool import forge_tool
from kernelforge_tools.get_card import get_card
from kernelforge_tools.get_node import get_node
from kernelforge_tools.get_status import get_status
from kernelforge_tools.get_tree import get_tree
from kernelforge_tools.inspect_cast import inspect_cast
from kernelforge_tools.list_cards import list_cards
from kernelforge_tools.mcts_select import mcts_select
from kernelforge_tools.record_usage import record_usage
from kernelforge_tools.slow_tools import SLOW
from kernelforge_tools.wait_job import wait_job


def tools() -> list[Tool]:
    """The tools, with what clients may assume about each."""
    return [
        SLOW["capture_model"],
        forge_tool(list_cards, read_only=True, idempotent=True),
        forge_tool(get_card, read_only=True, idempotent=True),
        forge_tool(mcts_select, read_only=False),
        SLOW["compile_and_validate"],
        SLOW["benchmark"],
        SLOW["profile_node"],
        forge_tool(get_node, read_only=True, idempotent=True),
        forge_tool(get_tree, read_only=True, idempotent=True),
        SLOW["export_cast"],
        forge_tool(inspect_cast, read_only=True, idempotent=True),
        SLOW["measure_model"],
        forge_tool(get_status, read_only=True, idempotent=True),
        forge_tool(record_usage, read_only=False, idempotent=True),
        forge_tool(wait_job, read_only=True, idempotent=True),
        forge_tool(cancel_job, read_only=False, destructive=True, idempotent=True),
    ]
