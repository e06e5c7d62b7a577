"""Asking a model again, where asking again may help."""

from collections.abc import Awaitable, Callable

import anyio
import httpx2

from kernelforge_agent.conversation import Turn
from kernelforge_agent.errors import Overloaded, StreamCut

MOST_TRIES = 6
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0

# What is said before the next try: why, and after how many seconds.
Retry = Callable[[str, float], None]


def retry_after(headers: httpx2.Headers) -> float | None:
    """The seconds that a server asks to wait, where it says so in seconds."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


async def patient(ask: Callable[[], Awaitable[Turn]], retry: Retry, left_s: float) -> Turn:
    """The answer to a request that is made again while its model is overloaded, after the time it
    asks for or twice as long each time; and once after an answer that broke off.

    Raises:
        Overloaded: it still is, or the wait is longer than what is left of the run's time.
        StreamCut: a second time.
    """
    cut, waits = False, 0
    while True:
        try:
            return await ask()
        except StreamCut as error:
            if cut:
                raise
            cut = True
            retry(str(error.fields["why"]), 0.0)
        except Overloaded as error:
            waits += 1
            doubled = min(FIRST_WAIT_S * 2 ** (waits - 1), LONGEST_WAIT_S)
            wait = doubled if error.retry_after is None else error.retry_after
            left_s -= wait
            if waits >= MOST_TRIES or left_s < 0:
                raise
            retry(str(error.fields["why"]), wait)
            await anyio.sleep(wait)
