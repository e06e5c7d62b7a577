"""Where a budget goes, and when nothing is worth any of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelforge_engine.errors import BadOption
from kernelforge_engine.search.budget import (
    ARMS,
    Budget,
    Stake,
    amdahl,
    limits,
    next_stake,
    not_worth_it,
    plan,
    stopped,
)


def stake(name, share=0.2, headroom=4.0, *results):
    return Stake(id=name, share=share, headroom=headroom, results=results)


def given_by(allotments):
    return {a.stake.id: a.evaluations for a in allotments}


stakes = st.builds(
    Stake,
    id=st.uuids().map(str),
    share=st.floats(0, 1),
    headroom=st.floats(0.5, 100),
    results=st.lists(st.one_of(st.none(), st.floats(0.01, 50)), max_size=12).map(tuple),
)


@given(st.lists(stakes, max_size=8, unique_by=lambda s: s.id), st.integers(0, 60))
def test_no_plan_spends_more_than_its_budget_or_on_what_is_not_worth_it(found, total):
    allotments = plan(found, Budget(total=total, each=10))
    assert {a.stake.id for a in allotments} == {s.id for s in found}
    assert sum(a.evaluations for a in allotments) <= total
    for allotment in allotments:
        spent = len(allotment.stake.results) + allotment.evaluations
        assert allotment.evaluations == 0 or spent <= 10
        if not_worth_it(allotment.stake) or stopped(allotment.stake):
            assert allotment.evaluations == 0
        assert (allotment.why_none is None) == (allotment.evaluations > 0)


@given(stakes)
def test_what_a_model_can_gain_is_amdahls_bound(found):
    kernel_at_floor = 1 - found.share + found.share / max(found.headroom, 1.0)
    assert amdahl(found.share, found.headroom) == pytest.approx(1 / kernel_at_floor)
    assert found.left <= found.most + 1e-12


def test_a_budget_goes_where_share_headroom_and_chance_are():
    found = [stake("large", 0.5, 10.0), stake("small", 0.1, 10.0), stake("near", 0.4, 1.02)]
    allotted = given_by(plan(found, Budget(total=6)))
    assert allotted["large"] > allotted["small"]
    assert allotted["near"] == 0 or allotted["near"] < allotted["small"]
    equal = [stake("won", 0.2, 10.0, 0.7, 1.5), stake("lost", 0.2, 10.0, None, 0.7)]
    assert next_stake(equal, Budget()).id == "won"
    assert next_stake(equal, Budget(total=4), spent=4) is None


def test_a_plan_changes_with_every_result():
    before = [stake("a", 0.3, 5.0), stake("b", 0.25, 5.0)]
    assert next_stake(before, Budget()).id == "a"
    failed = [stake("a", 0.3, 5.0, None), stake("b", 0.25, 5.0)]
    assert next_stake(failed, Budget()).id == "b"
    done = [stake("a", 0.3, 5.0, 4.9), stake("b", 0.25, 5.0, None, None)]
    assert next_stake(done, Budget()).id == "b"


def test_what_cannot_matter_is_not_worth_it_and_says_why():
    why = not_worth_it(stake("v1", 0.003, 1.2))
    assert why == (
        "not worth it: 0.30% of the model's time x (1 - 1/1.2) = 0.05%: the whole model at most "
        "1.001x, under 0.5%"
    )
    assert not_worth_it(stake("v2", 0.2, 4.0)) is None
    (none,) = plan([stake("v1", 0.003, 1.2)], Budget(total=5))
    assert (none.evaluations, none.why_none) == (0, why)


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ((0.1, None, 0.2, 0.2, None, 0.24), "not near eager: 0.24x at best of 6 tried"),
        ((0.9, *[0.8] * 6), "no nearer to eager in 6 tries: 0.9x"),
        ((1.5, *[1.4] * 12), "nothing faster than 1.5x in 12 tries"),
        ((3.8,), "at the floor: 3.8x of 4x"),
        ((0.1, None, 0.2, 0.2, None), None),
        ((0.2, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8), None),
        ((1.5, *[1.4] * 11), None),
    ],
)
def test_a_target_is_left_when_candidates_do_not_get_nearer(results, why):
    assert stopped(stake("v1", 0.5, 4.0, *results)) == why


def test_the_published_arms_and_a_limit_for_each_target_remain():
    assert list(ARMS) == ["opt0", "opt5", "opt10", "opt20", "opt50"]
    assert limits(None, "opt5") == Budget(each=6)  # a first version and five more
    assert limits(40, "3") == Budget(total=40, each=3)
    found = [stake("a", 0.5, 10.0), stake("b", 0.2, 10.0)]
    assert given_by(plan(found, limits(None, "opt0"))) == {"a": 1, "b": 1}
    with pytest.raises(BadOption, match="opt0, opt5"):
        limits(None, "opt7")
