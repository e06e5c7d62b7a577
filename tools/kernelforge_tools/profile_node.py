"""The tool that says what holds a node back."""

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from kernelforge_engine.engine import Engine
from kernelforge_engine.exchanges import Notice
from kernelforge_engine.profiles import Profile
from kernelforge_engine.records import Node
from kernelforge_tools.answer import Answer, call
from kernelforge_tools.profile_views import ProfileView
from kernelforge_tools.waiting import DEFAULT_WAIT_S, Wait, slow

SHOWN = 4


async def profile_node(
    ctx: Context[Engine],
    node_id: str,
    refresh: Annotated[bool, Field(description="measure again")] = False,
    wait_s: Wait = DEFAULT_WAIT_S,
) -> Answer[ProfileView]:
    """Say what holds a node back, in a sentence and the figures it rests on.

    For each launch of the exact binary: bound, occupancy, registers, spills, traffic, stalls; and
    how far a benchmarked call is from its roofline floor. On the cpu: the floor, and the vectors in
    its code. What is absent was not measured: not_measured says why.
    """

    async def work(engine: Engine, notice: Notice) -> Answer[ProfileView]:
        profile = await engine.profile(node_id, refresh=refresh, notice=notice)
        return _told(await engine.node(node_id), profile)

    arguments = {"node_id": node_id, "refresh": refresh}
    return await slow(ctx, "profile_node", arguments, wait_s, work)


def _told(node: Node, profile: Profile) -> Answer[ProfileView]:
    view = ProfileView.of(node, profile, SHOWN)
    following = [call("mcts_select", variant_id=node.variant_id)]
    if node.timing is None:
        following.insert(0, call("benchmark", node_id=node.id))
    return Answer(status="ok", summary=f"{node.id}: {view.summary}", data=view, next=following)
