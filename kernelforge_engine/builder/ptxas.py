"""What ptxas says of its work, when it is asked for it: how much each kernel spills.

A cubin tells registers and local memory, but not whether that memory is spills or arrays.
"""

import re

VERBOSE = "-Xptxas=-v"
# What has a number, as "(C7510) Potential Performance Loss", it says without being asked.
TOLD = re.compile(r"^ptxas(?: info +:(?! \(C\d)| +\.) .*\n?", re.MULTILINE)
INDENTED = re.compile(r"^ +\d+ bytes stack frame, .*\n?", re.MULTILINE)
SPILLS = re.compile(
    r"Function properties for (\S+)\n.*?bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads"
)


def spills(log: str) -> dict[str, dict[str, int]]:
    """Bytes that a thread stores and loads for want of registers, for every function."""
    return {
        symbol: {"spill_store_bytes": int(stored), "spill_load_bytes": int(loaded)}
        for symbol, stored, loaded in SPILLS.findall(log)
    }


def without(log: str) -> str:
    """A log without what ptxas told: times among it, which differ from build to build."""
    return INDENTED.sub("", TOLD.sub("", log))
