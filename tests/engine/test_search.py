"""What the policies choose, on plain records."""

import random
from collections import Counter
from dataclasses import replace
from math import floor

import pytest
from search_cases import grow, node

from kernelforge_engine.errors import BadOption
from kernelforge_engine.search.policy import LOG, PAPER, POLICIES, policy
from kernelforge_engine.search.tree import Tree


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_history_gives_the_same_choices(name):
    rng = random.Random(7)
    latencies = [rng.uniform(5, 200) for _ in range(60)]
    first, again = grow(policy(name), latencies), grow(policy(name), latencies)
    assert (first[0], [*first[1]]) == (again[0], [*again[1]])


def test_each_result_adds_one_visit_to_every_ancestor():
    _, tree = grow(policy("paper"), [90.0] * 25)
    assert tree.root.visits == 26


@pytest.mark.parametrize("rule", [LOG, PAPER])
def test_no_node_grows_wider_than_the_rule_allows(rule):
    rng = random.Random(3)
    latencies = [rng.uniform(5, 200) for _ in range(200)]
    chosen, tree = grow(rule.choose, latencies)
    for parent, children in Counter(chosen).items():
        assert children <= floor(tree.node(f"n{parent}").visits ** rule.widening_start) + 1


def test_the_paper_rule_cannot_see_a_tenfold_gain_at_five_microseconds():
    tree = Tree(
        [
            node(0, None, visits=6, latency=5.0),
            node(1, 0, visits=3, latency=0.5),
            node(2, 0, visits=1, latency=5.0),
            node(3, 0, visits=1, latency=5.0),
            node(4, 0, visits=1, latency=5.0),
        ]
    )
    assert policy("paper")(tree).id != "n1"
    assert policy("log")(tree).id == "n1"


def test_an_open_lease_counts_as_a_child_to_come():
    free = Tree([node(0, None, visits=1)])
    leased = Tree([node(0, None, visits=1, pending=2)])
    assert LOG.widens(free, free.root)
    assert not LOG.widens(leased, leased.root)


@pytest.mark.parametrize("name", ["spread", "log"])
def test_two_leases_on_one_tree_spread_over_it(name):
    nodes = [node(0, None, visits=5), node(1, 0, 2, 50.0), node(2, 0, 2, 51.0), node(3, 0, 1, 90.0)]
    first = policy(name)(Tree(nodes)).id
    again = [replace(n, pending=2) if n.id == first else n for n in nodes]
    assert policy(name)(Tree(again)).id != first


def test_the_fastest_node_is_left_when_its_children_bring_nothing():
    nodes = [node(0, None, latency=100.0), node(1, 0, latency=20.0), node(2, 0, latency=30.0)]
    slower = [node(i, 1, latency=60.0) for i in range(3, 8)]
    assert policy("spread")(Tree(nodes)).id == "n1"
    assert policy("spread")(Tree([*nodes, *slower[:4]])).id == "n1"
    assert (
        policy("spread")(Tree([*nodes, *slower])).id == "n2"
    )  # five tolls are more than ln(30/20)


def test_a_spent_child_is_left_alone():
    tree = Tree(
        [
            node(0, None, visits=21),
            node(1, 0, visits=12, latency=10.0),
            *[node(i, 0, visits=1, latency=80.0) for i in range(2, 7)],
        ]
    )
    assert policy("log")(tree).id != "n1"


@pytest.mark.parametrize("name", POLICIES)
def test_an_untimed_child_is_not_descended_into(name):
    tree = Tree([node(0, None, visits=1), node(1, 0, 0, None), node(2, 0, 0, None)])
    assert policy(name)(tree).id == "n0"


def test_greedy_revises_the_fastest_node_and_linear_the_newest():
    nodes = [node(0, None, 5), node(1, 0, 2, 50.0), node(2, 1, 1, 20.0), node(3, 2, 1, 70.0)]
    assert policy("greedy")(Tree(nodes)).id == "n2"
    assert policy("linear")(Tree(nodes)).id == "n3"
    slower = [node(0, None, 2), node(1, 0, 1, 150.0)]
    assert policy("greedy")(Tree(slower)).id == "n0"
    assert policy("linear")(Tree(slower)).id == "n1"


def test_a_beam_fills_a_level_before_it_goes_on_with_its_fastest_nodes():
    latencies = [90.0, 40.0, 80.0, 30.0, 70.0, 95.0, 10.0, 60.0, 50.0, 85.0, 20.0, 65.0, 33.0]
    chosen, _ = grow(policy("beam"), latencies)
    assert chosen[:6] == [0] * 6
    # The three fastest of the first level are n4 (30), n2 (40) and n5 (70).
    assert sorted(chosen[6:12]) == [2, 2, 4, 4, 5, 5]
    assert chosen[12] == 7  # the fastest of the second level


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(BadOption, match="spread, log, paper, greedy, linear or beam"):
        policy("magic")
