"""The profile of a valid candidate: its exact binary, on the captured example."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from kernelforge_engine import codec
from kernelforge_engine.builder.vectors import Unknown, code
from kernelforge_engine.pool.orders import ProfileOrder
from kernelforge_engine.profiles import Floor, LaunchProfile, Profile
from kernelforge_engine.worker.counting import Counting
from kernelforge_engine.worker.machine import device_name
from kernelforge_engine.worker.roofline import Roofline
from kernelforge_engine.worker.tensors import dtype_of
from kernelforge_engine.worker.traffic import call_bytes
from kernelforge_engine.worker.verdicts import Case

ON_CUDA = (
    "ncu replayed each launch alone, from cold caches and at the clocks the device had; floors are "
    "from the rates that a large copy and a large matrix product reach here"
)
ON_CPU = (
    "the object's instructions were read, and floors are from the rates that a copy in cache and a "
    "matrix product reach here; nothing was run"
)
NO_FLOPS = "nobody counts the flops of this operator, so only its bytes make its floor"
NOT_ON_CPU = "counters of processors are not read; the code and the floor are what is known"


def profiled(order: ProfileOrder, case: Case, roofline: Roofline) -> Profile:
    """What can be said of the order's candidate on this machine."""
    started = time.monotonic()
    plan = order.plan
    profile = Profile(
        backend=order.variant.call.backend,
        device=device_name(case.device),
        binary_sha256=codec.sha256(Path(order.artifact.path).read_bytes()),
        plan_sha256=codec.sha256(codec.dumps(plan)),
        method=ON_CUDA if case.device.type == "cuda" else ON_CPU,
        planned=len(plan.launches),
        launches=tuple(LaunchProfile(kernel=launch.kernel) for launch in plan.launches),
        floor=_floor(order, roofline),
    )
    if profile.floor.compute_us is None:
        profile = _lacking(profile, {"compute_floor_us": NO_FLOPS})
    add = _on_cuda if case.device.type == "cuda" else _on_cpu
    return replace(add(profile, order, case), seconds=time.monotonic() - started)


def _floor(order: ProfileOrder, roofline: Roofline) -> Floor:
    call, flops = order.variant.call, order.variant.flops
    floating = [dtype for spec in call.inputs if (dtype := dtype_of(spec.dtype)).is_floating_point]
    size = call_bytes(call)
    counted = bool(flops and floating)
    return Floor(
        bytes=size,
        memory_us=roofline.memory_us(size),
        flops=flops if counted else None,
        compute_us=roofline.compute_us(flops, floating[0]) if counted else None,
    )


def _on_cpu(profile: Profile, order: ProfileOrder, _case: Case) -> Profile:
    profile = _lacking(profile, {"counters": NOT_ON_CPU})
    try:
        return replace(profile, code=code(Path(order.artifact.path), order.environment))
    except Unknown as why:
        return _lacking(profile, {"code": str(why)})


def _on_cuda(profile: Profile, order: ProfileOrder, case: Case) -> Profile:
    torch.cuda.synchronize(case.device)
    launches, lacking = Counting(order, case.captured).launches()
    return _lacking(replace(profile, launches=launches), lacking)


def _lacking(profile: Profile, why: Mapping[str, str]) -> Profile:
    return replace(profile, not_measured={**profile.not_measured, **why})
