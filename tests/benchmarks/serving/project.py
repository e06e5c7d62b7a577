"""A project of many nodes, made through the store's own door."""

import json
from dataclasses import dataclass
from pathlib import Path

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.plans import LaunchPlan, Source
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Capture, Outcome, Status, Timing, Verdict
from kernelforge_engine.store.captures import Captures
from kernelforge_engine.store.database import Database
from kernelforge_engine.store.trees import Filing, Trees

VARIANTS = 51
LARGE, SMALL = 5000, 100  # nodes of the first variant's tree, and of each other's
BRANCHES = 3  # children of a node
SOURCE = "// candidate {0}\n" + "  y[i] = x[i] < 0.0f ? 0.0f : x[i];\n" * 60
DRAWS = ("captured", "resampled", "normal", "shifted", "special", "spread", "tiny", "large")


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a project holds: the variant of the large tree, those of the others, some nodes."""

    large: str
    small: tuple[str, ...]
    nodes: tuple[str, ...]


async def make(folder: Path) -> Made:
    """Fill a project with 10,000 nodes in 51 trees, unless it is there already."""
    variants = [f"v{n + 1}" for n in range(VARIANTS)]
    async with Database.open(folder, None) as database:
        trees = Trees(database)
        if not (await trees.counts())[0]:
            await Captures(database).add(_capture(), [_sighting(n) for n in range(VARIANTS)])
            for number, variant in enumerate(variants):
                await _fill(trees, variant, SMALL if number else LARGE)
        nodes = [n.id for v in variants for n in (await trees.nodes(v))[1:]]
    return Made(large=variants[0], small=tuple(variants[1:]), nodes=tuple(nodes))


async def _fill(trees: Trees, variant: str, size: int) -> None:
    made = [(await trees.root(variant, 0.0)).id]
    for number in range(size):
        parent = made[number // BRANCHES]
        node = await trees.file_node(_filing(variant, parent, number))
        await trees.file_timing(node.id, _timing(number), 1.0)
        made.append(node.id)


def _filing(variant: str, parent: str, number: int) -> Filing:
    text = SOURCE.format(f"{variant} {number}")
    plan = LaunchPlan(lets=(), launches=())
    return Filing(
        variant_id=variant,
        parent_id=parent,
        lease_id=None,
        source=Source(text=text, backend="cpu", plan=plan, digest=f"{variant}-{number}"),
        author="an agent",
        note=f"idea {number}: hold the row in registers and read four values at a time",
        verdict=Verdict(
            status=Status.VALID,
            reason="its outputs hold on every draw",
            evidence={
                "policy": "full",
                "draws": {name: {"rms": 0.12, "worst": 0.4, "rule": "T1"} for name in DRAWS},
            },
        ),
        artifact_digest=None,
        at=float(number),
    )


def _timing(number: int) -> Timing:
    speedup = 0.5 + (number * 7919 % 1000) / 1000
    return Timing(
        outcome=Outcome.FASTER if speedup > 1.1 else Outcome.INCONCLUSIVE,
        speedup=speedup,
        low=speedup - 0.02,
        high=speedup + 0.02,
        eager_us=10.0,
        candidate_us=10.0 / speedup,
        scope="O",
        evidence={"attempt": number + 1, "quartets": [1.01] * 60, "confidence": 0.995},
    )


def _capture() -> Capture:
    return Capture(
        id="", model="model.py:make_model", inputs=("make_inputs",), device="cpu",
        device_name="a processor", torch_version="2.13.0", wall_us=1000.0, busy_us=800.0,
        calls=VARIANTS, output_drift=0.0, created_at=0.0,
    )  # fmt: skip


def _sighting(number: int) -> Sighting:
    """One variant; three of them share an operator, and so a card."""
    spec = TensorSpec(dtype="float32", shape=(number + 1, 64), stride=(64, 1), device="cpu")
    return Sighting(
        call=Call(
            operator=f"aten::operator_{number // 3}",
            overload="",
            words=(number,),
            arguments=(Argument(name="self", value={"tensor": 0}),),
            inputs=(spec,),
            outputs=(OutputSpec(tensor=spec),),
        ),
        calls=3, eager_us=10.0, share=1 / VARIANTS, floor_us=1.0, module="block", target=True,
        reason=None, examples=(("blob",),),
    )  # fmt: skip


def listed_tokens() -> float:
    """Tokens of the list of tools as the wire carries it, at four characters each."""
    from kernelforge_tools.registry import tools

    listed = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations.model_dump(by_alias=True, exclude_none=True),
        }
        for tool in tools()
    ]
    return len(json.dumps(listed)) / 4
