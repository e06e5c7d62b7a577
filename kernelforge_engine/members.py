"""The sizes of a shape family: the variant at one of them, and those a candidate has to serve."""

from dataclasses import replace

from kernelforge_engine import codec
from kernelforge_engine.families import instance
from kernelforge_engine.fitting import Numbers, distance
from kernelforge_engine.records import Family, Member, Variant, Verdict


def at_size(variant: Variant, values: Numbers) -> Variant:
    """A family's variant at one size, as an exact variant: one that is held out has no example."""
    family = variant.family
    if family is None:
        return variant
    member = nearest(family, values)
    if member.sizes == values:
        call, examples = member.call, member.examples
    else:
        call, examples = instance(family, variant.call, values), ()
    return replace(
        variant,
        call=call,
        calls=member.calls,
        eager_us=member.eager_us,
        floor_us=member.floor_us,
        examples=examples,
        family=None,
    )


def named(variant: Variant, values: Numbers) -> str:
    """A size of a family as people read it: s0 = 13."""
    return variant.family.named(values) if variant.family else variant.id


def nearest(family: Family, values: Numbers) -> Member:
    """The member whose sizes are closest, the smaller one of two."""
    return min(family.members, key=lambda m: (distance(m.sizes, values), m.sizes))


def all_sizes(variant: Variant) -> tuple[Numbers, ...]:
    """Every size of a family that a candidate must have a launch for."""
    family = variant.family
    return (*(m.sizes for m in family.members), *family.held_out) if family else ()


def ends(variant: Variant) -> tuple[Numbers, ...]:
    """The smallest and the largest member, without the dearest, which is looked at anyway."""
    family = variant.family
    if family is None:
        return ()
    found = (family.members[0].sizes, family.members[-1].sizes)
    return tuple(v for v in dict.fromkeys(found) if v != family.dearest.sizes)


def judged_at(variant: Variant) -> tuple[Numbers, ...]:
    """The sizes besides the dearest at which a candidate is judged: the ends, one member between
    them, and what was held out."""
    family = variant.family
    if family is None:
        return ()
    seen = {*ends(variant), family.dearest.sizes}
    between = [m.sizes for m in family.members if m.sizes not in seen]
    return (*ends(variant), *between[len(between) // 2 :][:1], *family.held_out)


def is_judged_at(verdict: Verdict, values: Numbers) -> bool:
    """Whether a size lies inside the range of those at which a verdict was reached."""
    judged = verdict.evidence.get("judged_at")
    if not isinstance(judged, list):
        return False
    points = codec.load(tuple[Numbers, ...], judged)
    ranges = [(min(column), max(column)) for column in zip(*points, strict=True)]
    return all(low <= v <= high for v, (low, high) in zip(values, ranges, strict=True))


def is_covered(verdict: Verdict | None, variant: Variant) -> bool:
    """Whether a verdict was reached over the whole range of a family, or on an exact variant."""
    members = variant.family.members if variant.family else ()
    return verdict is not None and all(is_judged_at(verdict, m.sizes) for m in members)
