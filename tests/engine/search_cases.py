"""Trees of plain records, and a search that runs on its own."""

from collections import Counter

from kernelforge_engine.search.tree import Tree, TreeNode

EAGER_US = 100.0


def node(number, parent, visits=1, latency=EAGER_US, pending=0):
    return TreeNode(
        id=f"n{number}",
        parent_id=None if parent is None else f"n{parent}",
        visits=visits,
        pending=pending,
        latency_us=latency,
    )


def grow(choose, latencies):
    """Each chosen parent gets a child with the next latency: the parents in order, and the tree."""
    parents, visits, known = {0: None}, Counter({0: 1}), {0: EAGER_US}
    chosen = []

    def tree():
        return Tree(node(i, parents[i], visits[i], known[i]) for i in parents)

    for number, latency in enumerate(latencies, 1):
        parent = int(choose(tree()).id[1:])
        chosen.append(parent)
        parents[number], known[number] = parent, latency
        step = number
        while step is not None:
            visits[step] += 1
            step = parents[step]
    return chosen, tree()
