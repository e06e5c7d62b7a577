"""What the two authors of the end-to-end run do, as parts of a played model."""

ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[(i + 1) % n] = x[i];
}
"""
BRANCH = ROLL.replace("y[(i + 1) % n]", "y[i == n - 1 ? 0 : i + 1]")
BACKWARD = ROLL.replace("long i = 0; i < n; ++i", "long i = n - 1; i >= 0; --i")
WRONG = ROLL.replace("= x[i]", "= 7 * x[i]")
WORSE = ROLL.replace("= x[i]", "= 9 * x[i]")
TRIES = 6  # on a busy machine a timing may be inconclusive


def target(operator):
    """Capture the model and read an operator's card; its variant."""
    yield "capture", [("capture_model", {"model": "model.py"})]
    (cards,) = yield "cards", [("list_cards", {})]
    card = next(c["id"] for c in cards["data"]["cards"] if c["operator"] == operator)
    (shown,) = yield "card", [("get_card", {"card_id": card})]
    return shown["data"]["header"]["variant_id"]


def leased(label, variant, policy="beam"):
    given = {"variant_id": variant, "policy": policy, "max_repairs": 1}
    (selected,) = yield label, [("mcts_select", given)]
    return selected["data"]["lease_id"]


def proposed(label, variant, lease, source):
    given = {
        "variant_id": variant,
        "lease_id": lease,
        "source": source,
        "note": label,
        "wait_s": 240,
    }
    (judged,) = yield label, [("compile_and_validate", given)]
    return judged


def searching():
    """Write, mend, write another from the start, revise the faster one, export."""
    variant = yield from target("aten::roll")
    lease = yield from leased("lease", variant)
    yield from proposed("write", variant, lease, WRONG)
    first = yield from proposed("mend", variant, lease, ROLL)
    for _ in range(TRIES):
        (timed,) = yield "time", [("benchmark", {"node_id": first["data"]["node_id"]})]
        if timed["status"] == "faster":
            break
    lease = yield from leased("widen", variant)
    yield from proposed("write another", variant, lease, WORSE)
    second = yield from proposed("mend the other", variant, lease, BRANCH)
    yield "time the other", [("benchmark", {"node_id": second["data"]["node_id"]})]
    lease = yield from leased("revise", variant, "linear")
    third = yield from proposed("write the revision", variant, lease, BACKWARD)
    yield "time the revision", [("benchmark", {"node_id": third["data"]["node_id"]})]
    yield "export", [("export_cast", {"path": "model.cast", "measure": False, "wait_s": 240})]
    return "roll is faster."


def hopeless():
    """Fail until the plan gives the target no more."""
    variant = yield from target("aten::flip")
    for number in range(TRIES // 2):
        lease = yield from leased(f"lease {number}", variant)
        for attempt in ("first", "last"):
            source = f"// {attempt} of {number}"
            yield from proposed(f"{attempt} {number}", variant, lease, source)
        refused = yield from proposed(f"late {number}", variant, lease, ROLL)
        assert "used up its repairs" in refused["summary"]
    (plan,) = yield "plan", [("list_cards", {"budget": 10, "limit": 100})]
    (row,) = (row for row in plan["data"]["plan"] if row["variant_id"] == variant)
    return f"{row['proposals']} more: {row['why_none']}"
