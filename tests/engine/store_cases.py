"""Records as they come to the store, and the little that is done before each test of it."""

from dataclasses import replace

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.plans import LaunchPlan, Source
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Capture, Outcome, Status, Timing, Verdict
from kernelforge_engine.search.policy import policy
from kernelforge_engine.store.leases import Leases, Request
from kernelforge_engine.store.trees import Filing

CAPTURE = Capture(
    id="",
    model="m.py:make_model",
    inputs=("make_inputs",),
    device="cpu",
    device_name="a processor",
    torch_version="2.13.0",
    wall_us=100.0,
    busy_us=80.0,
    calls=3,
    output_drift=0.0,
    created_at=1.0,
)


def sighting(word=1, share=0.5, **changes):
    tensor = TensorSpec(dtype="float32", shape=(2, 3), stride=(3, 1), device="cpu")
    seen = Sighting(
        call=Call(
            operator="aten::relu",
            overload="",
            words=(word, 2**64 - 1),
            arguments=(Argument(name="self", value={"tensor": 0}),),
            inputs=(tensor,),
            outputs=(OutputSpec(tensor=tensor),),
        ),
        calls=2,
        eager_us=10.0,
        share=share,
        floor_us=1.0,
        module="",
        target=True,
        reason=None,
        examples=(("blob",),),
    )
    return replace(seen, **changes)


def request(**changes):
    wanted = Request(
        variant_id="v1", holder="me", policy="log", at=1.0, expires_at=100.0, max_repairs=3
    )
    return replace(wanted, **changes)


async def lease(database, eager_us=10.0, **changes):
    """A lease as the search gives it."""
    wanted = request(**changes)
    return (await Leases(database).take(wanted, eager_us, policy(wanted.policy)))[0]


def filing(variant_id, parent_id, lease_id=None, status=Status.VALID, digest="d"):
    return Filing(
        variant_id=variant_id,
        parent_id=parent_id,
        lease_id=lease_id,
        source=Source(
            text="text", backend="cpu", plan=LaunchPlan(lets=(), launches=()), digest=digest
        ),
        author="author",
        note="note",
        verdict=Verdict(status=status, reason="because"),
        artifact_digest="a",
        at=2.0,
    )


TIMING = Timing(
    outcome=Outcome.FASTER,
    speedup=2.0,
    low=1.9,
    high=2.1,
    eager_us=10.0,
    candidate_us=5.0,
    scope="O",
)
