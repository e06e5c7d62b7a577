"""What a run knows of what it found, from what the tools answered."""

from kernelforge_agent.budget import Budget
from kernelforge_agent.conversation import ToolOutcome
from kernelforge_agent.findings import Findings
from kernelforge_agent.fork import changed
from kernelforge_agent.job import Job, Task


def benchmark(node, low, outcome="faster"):
    timing = {"outcome": outcome, "speedup": low + 0.5, "low": low, "high": low + 1}
    data = {"node_id": node, "variant_id": "v1", "timing": timing}
    return ToolOutcome(id="1", tool="benchmark", answer={"status": outcome, "data": data})


def test_a_run_has_reached_a_speedup_by_the_lower_end_and_the_newest_timing():
    found = Findings()
    found.learn(benchmark("n2", 1.9))
    assert found.reaching(2.0) is None
    found.learn(benchmark("n2", 2.0))
    assert found.reaching(2.0) == "n2 of v1 is 2.5x eager (2.0 to 3.0)"
    found.learn(benchmark("n2", 0.9, "slower"))
    assert found.reaching(0.5) is None


def test_a_fork_wants_a_speedup_only_where_it_is_asked_for_one():
    task = Task(model="m.py", device="cpu", goal="faster", cards=(), cast="m.cast")
    job = Job(task=task, model="library", budget=Budget(turns=9, enough=2.0))
    assert changed(job, None, None, Budget()).budget == Budget(turns=9)
    assert changed(job, None, None, Budget(enough=3.0)).budget == Budget(turns=9, enough=3.0)
