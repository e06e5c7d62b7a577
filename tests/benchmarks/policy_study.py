"""How search policies and budgets compare at equal numbers of proposals, as JSON.

Every policy searches the same landscapes (policies/landscapes.py says which of them are fitted to
what) with the same luck, many times. What counts is ln(speed-up over eager) of the node that was
measured fastest, by its true time. `minus_default` is a policy's mean less the default's, over the
same runs, with the 95 % interval of that mean difference: the default is worse than a policy only
where the whole interval is above 0. Budgets spend the proposals of a whole made-up model, and the
part of its time that they save is what counts.

    python tests/benchmarks/policy_study.py [RUNS] [FIGURE.svg]
"""

import json
import sys
from math import log, sqrt
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev

from policies.budgets import BUDGETS, CARDS, model_saving
from policies.figure import drawn
from policies.landscapes import (
    ITERATIONS,
    Family,
    families,
    published_growth,
    published_spread,
)
from policies.simulate import curve, from_a_first_version

from kernelforge_engine.search.policy import DEFAULT, POLICIES

RUNS, MODELS = 120, 60
FIRST_SEED = 1000  # the toll of the default was chosen on runs before it
AT = (5, 10, 20, 50)
Z = 1.96


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    curves = {
        family: {
            name: [curve(make, choose, FIRST_SEED + n, AT[-1]) for n in range(runs)]
            for name, choose in POLICIES.items()
        }
        for family, make in families().items()
    }
    for family, found in curves.items():
        said(family=family, runs=runs, proposals={str(n): at(found, n) for n in AT})
    said(shortfall=shortfall(means(curves)))
    said(fit=fit(families()["published"], runs))
    for total in (CARDS, 3 * CARDS, 6 * CARDS):
        said(budgets=budgets(total), models=MODELS, proposals=total)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(drawn(means(curves), AT[-1]), "utf-8")


def at(found: dict[str, list[list[float]]], proposals: int) -> dict[str, object]:
    """Every policy after so many proposals."""
    reached = {name: [c[proposals - 1] for c in curves] for name, curves in found.items()}
    return compared(reached, DEFAULT)


def compared(reached: dict[str, list[float]], default: str) -> dict[str, object]:
    """The mean of each, and what it is more than the default's, run by run."""
    rows: dict[str, object] = {}
    for name, values in reached.items():
        row: dict[str, object] = {"mean": round(fmean(values), 3)}
        if name != default:
            differences = [v - d for v, d in zip(values, reached[default], strict=True)]
            half = Z * stdev(differences) / sqrt(len(differences))
            mean = fmean(differences)
            row["minus_default"] = [round(x, 3) for x in (mean, mean - half, mean + half)]
        rows[name] = row
    return rows


def shortfall(curves: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """How far each policy's mean is below that of the best policy, over families and proposals: on
    average and at worst."""
    below: dict[str, list[float]] = {name: [] for name in POLICIES}
    for found in curves.values():
        for n in AT:
            best = max(curve[n - 1] for curve in found.values())
            for name, curve_of in found.items():
                below[name].append(best - curve_of[n - 1])
    return {
        name: {"mean": round(fmean(values), 3), "most": round(max(values), 3)}
        for name, values in below.items()
    }


def fit(family: Family, runs: int) -> dict[str, object]:
    """The fitted landscape under the published rule, beside what it is fitted to: the growth of the
    best in ln(speed-up), the spread of the first five siblings, how many end faster than eager."""
    growth: dict[int, list[float]] = {n: [] for n in ITERATIONS}
    spreads, faster = [], 0
    for seed in range(runs):
        search = from_a_first_version(family, POLICIES["paper"], seed, ITERATIONS[-1])
        first = search.states["0"].height
        for n in growth:
            known = [log(result) for result in search.results[:n] if result]
            growth[n].append(max([0.0, *(first + gained for gained in known)]))
        siblings = [log(result) for result in search.results[:5] if result]
        spreads += [stdev(siblings)] if len(siblings) > 2 else []
        faster += min(first, search.best) < 0
    return {
        "growth": {n: round(median(values), 2) for n, values in growth.items()},
        "growth_published": {n: round(g, 2) for n, g in published_growth().items()},
        "sibling_spread": round(median(spreads), 2),
        "sibling_spread_published": round(published_spread(), 2),
        "faster": round(faster / runs, 2),
        "faster_published": round(14 / 33, 2),
    }


def budgets(total: int) -> dict[str, object]:
    """What each way to spend a budget saves of a model's time, and how many proposals it used."""
    spent = {
        name: [model_saving(spend, total, Random(seed)) for seed in range(MODELS)]
        for name, spend in BUDGETS.items()
    }
    rows = compared({name: [s.saved for s in found] for name, found in spent.items()}, "replanned")
    used = {name: round(fmean(s.proposals for s in found), 1) for name, found in spent.items()}
    return {"saved": rows, "proposals_used": used}


def means(curves: dict[str, dict[str, list[list[float]]]]) -> dict[str, dict[str, list[float]]]:
    """The mean curve of every policy on every family."""
    return {
        family: {
            name: [fmean(values) for values in zip(*runs, strict=True)]
            for name, runs in found.items()
        }
        for family, found in curves.items()
    }


def said(**document: object) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    main()
