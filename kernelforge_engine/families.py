"""Shape families: variants of one operator that differ only in sizes that were seen to vary.

Every integer of a call is a constant plus whole multiples of one or two symbols. A symbol is one of
the call's own sizes, so that the same family is found again in another capture.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush, nsmallest

from kernelforge_engine import sizes
from kernelforge_engine.calls import Call, TensorSpec
from kernelforge_engine.cast.words import call_words
from kernelforge_engine.fitting import (
    Fit,
    Numbers,
    Places,
    evaluated,
    fitted,
    held_out,
    lines,
    step_of,
)
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.records import Family, Member

MOST_SPLIT = 512  # lines are looked for among so many variants; all are looked at as a whole
MOST_LINES = 2000


def families(sightings: Sequence[Sighting]) -> list[Sighting]:
    """The shape families among the targets of one capture, dearest first."""
    groups: dict[object, list[Sighting]] = {}
    for sighting in sightings:
        if sighting.target and sighting.examples and sighting.family is None:
            groups.setdefault(_kin(sighting), []).append(sighting)
    found = [f for group in groups.values() if len(group) > 1 for f in _of_group(group)]
    return sorted(found, key=lambda s: -s.share)


def instance(family: Family, call: Call, values: Sequence[int]) -> Call:
    """The call of a family's member, or of any other value of its symbols."""
    made = sizes.resized(call, evaluated(family.fits, values))
    return replace(made, words=call_words(made))


def _kin(sighting: Sighting) -> tuple[object, ...]:
    """What the members of a family share: all but their sizes, and the parameters they use."""
    call = sighting.call
    used = tuple(call.inputs[i] for i in sighting.parameters)
    return sizes.skeleton(call), sighting.parameters, used, sighting.requires


def _of_group(group: Sequence[Sighting]) -> Iterator[Sighting]:
    vectors = {sizes.numbers(s.call): s for s in group}
    shared = _Group(group[0].call)
    for chosen, fit in shared.fitting(sorted(vectors)):
        yield _sighting({v: vectors[v] for v in chosen}, fit, shared.places)


class _Group:
    """Calls with one skeleton, of which `call` is any."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.places = Places(sizes=sizes.places(call), arguments=sizes.argument_places(call))

    def fitting(self, vectors: list[Numbers]) -> Iterator[tuple[list[Numbers], Fit]]:
        """All of them where one fit serves all, else the largest sets that a line goes through."""
        whole = self._sound(vectors, symbols=(1, 2))
        if whole is not None:
            yield vectors, whole
            return
        few = vectors[:MOST_SPLIT]
        used: set[int] = set()
        queue = nsmallest(MOST_LINES, ((-len(line), line) for line in lines(few)))
        while queue:
            size, line = heappop(queue)
            left = tuple(i for i in line if i not in used)
            if len(left) == -size:
                fit = self._sound([few[i] for i in left], symbols=(1,))
                if fit is not None:
                    used.update(left)
                    yield [few[i] for i in left], fit
            elif len(left) > 1:
                heappush(queue, (-len(left), left))

    def _sound(self, vectors: Sequence[Numbers], symbols: tuple[int, ...]) -> Fit | None:
        """The first fit that also makes sense where nobody looked: a tensor that is dense in every
        member stays dense beyond them. Two sizes never tell a product from a sum otherwise."""
        for fit in (fitted(vectors, self.places, count) for count in symbols):
            if fit is not None and self._stays_dense(fit, vectors):
                return fit
        return None

    def _stays_dense(self, fit: Fit, vectors: Sequence[Numbers]) -> bool:
        seen = list(zip(*(fit.symbols_of(v) for v in vectors), strict=True))
        beyond = [max(values) + 3 * step_of(values) for values in seen]
        probe = self._tensors(evaluated(fit.rows, beyond))
        doubtful = [i for i, tensor in enumerate(probe) if not _is_dense(tensor)]
        return not any(all(_is_dense(self._tensors(v)[i]) for v in vectors) for i in doubtful)

    def _tensors(self, values: Numbers) -> list[TensorSpec]:
        call = sizes.resized(self._call, values)
        return [*call.inputs, *(output.tensor for output in call.outputs)]


def _is_dense(spec: TensorSpec) -> bool:
    """Whether its elements fill one block of memory, each of them once."""
    return len(spec.shape) > 0 and spec.extent == spec.numel


def _sighting(members: Mapping[Numbers, Sighting], fit: Fit, places: Places) -> Sighting:
    by_size = sorted(members, key=fit.symbols_of)
    found = [members[v] for v in by_size]
    calls = sum(s.calls for s in found)
    family = Family(
        symbols=tuple(f"s{i}" for i in range(len(fit.columns))),
        fits=fit.rows,
        members=tuple(_member(fit.symbols_of(v), members[v]) for v in by_size),
        held_out=held_out(by_size, fit, places),
    )
    dearest = next(s for s in found if s.call == family.dearest.call)
    return replace(
        dearest,
        calls=calls,
        eager_us=sum(s.calls * s.eager_us for s in found) / calls,
        floor_us=sum(s.calls * s.floor_us for s in found) / calls,
        share=sum(s.share for s in found),
        family=family,
    )


def _member(values: tuple[int, ...], sighting: Sighting) -> Member:
    return Member(
        sizes=values,
        call=sighting.call,
        calls=sighting.calls,
        eager_us=sighting.eager_us,
        floor_us=sighting.floor_us,
        examples=sighting.examples,
    )
