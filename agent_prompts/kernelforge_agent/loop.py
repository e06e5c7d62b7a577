"""The loop: ask the model, carry out what it wants, tell it what came of it, until the end."""

import time
from dataclasses import dataclass
from typing import Literal

from kernelforge_agent.accounts import Accounts
from kernelforge_agent.briefing import Briefing
from kernelforge_agent.conversation import Model, Reply, ToolCall, ToolOutcome, ToolSpec, Turn
from kernelforge_agent.errors import ModelFailed
from kernelforge_agent.findings import Findings
from kernelforge_agent.forge import USAGE, WAIT, Forge
from kernelforge_agent.journal import Journal, of, outcomes
from kernelforge_agent.patience import patient
from kernelforge_agent.prompts import READ_GUIDANCE, guidance, prompt
from kernelforge_agent.subjects import Subjects

How = Literal["finished", "budget", "enough"]
KEPT_FROM_MODELS = (USAGE, WAIT)  # the agent reports and waits by itself


@dataclass(frozen=True, kw_only=True)
class End:
    """How a loop ended, and the model's report, the limit that was reached, or what is enough."""

    how: How
    text: str


def offered(forge: Forge) -> list[ToolSpec]:
    """The tools that models are told of."""
    return [t for t in forge.tools if t.name not in KEPT_FROM_MODELS] + [READ_GUIDANCE]


class Author:
    """One model at work. All that it is told and all that it does goes through its journal, so that
    another process can go on where this one is killed."""

    def __init__(self, model: Model, forge: Forge, journal: Journal, accounts: Accounts) -> None:
        self._model, self._forge, self._journal = model, forge, journal
        init = journal.of("init")[0]
        self._accounts, self._meter = accounts, accounts.meter
        self._findings, self._briefing = Findings(), Briefing(init["hardware"])
        self._subjects = Subjects()
        self._system = init["system"]
        self._talk = journal.talk()
        self._warned = any(record["nearly"] for record in of(journal.own, "reply"))
        self._tools = offered(forge)
        self._recall()
        accounts.findings.append(self._findings)

    @property
    def findings(self) -> Findings:
        return self._findings

    async def run(self) -> End:
        """Work until the model has no more to do, a kernel is fast enough, or the budget leaves no
        room.

        Raises:
            ModelFailed, ServerFailed, NotPossible
        """
        await self._accounts.settle(self._journal)
        while True:
            last = self._talk[-1]
            if isinstance(last, Turn):
                if last.stop == "done":
                    await self._accounts.report(self._journal, last, self._turns, None)
                    return self._ended("finished", last.text)
                await self._reply(last)
            if enough := self._accounts.enough():
                return self._ended("enough", enough)
            if limit := await self._accounts.reached():
                self._journal.tell("budget", limit=limit)
                return self._ended("budget", limit)
            self._talk.append(await self._asked())

    def _recall(self) -> None:
        """Learn again what the calls of an earlier process, or of the run that this one goes on
        from, gave."""
        inherited = self._turns - len(of(self._journal.own, "message"))
        for number, message in enumerate(self._journal.of("message"), 1):
            called = {call["id"]: ToolCall(**call) for call in message["calls"]}
            for outcome in outcomes(self._journal.records, number):
                self._findings.learn(outcome)
                self._subjects.learn(outcome)
                self._briefing.brief(called[outcome.id], outcome)
            if number == inherited:
                self._findings = self._findings.inherited()

    @property
    def _turns(self) -> int:
        return len(self._journal.of("message"))

    async def _asked(self) -> Turn:
        started = time.monotonic()
        turn = await patient(
            lambda: self._model.turn(self._system, self._talk, self._tools, self._heard),
            retry=lambda why, wait_s: self._journal.write("api_retry", why=why, after_s=wait_s),
            left_s=self._accounts.left_s(),
        )
        seconds = round(time.monotonic() - started, 3)
        calls = [vars(call) for call in turn.calls]
        self._journal.write("message", **{**vars(turn), "calls": calls, "seconds": seconds})
        self._meter.took(turn.tokens)
        if turn.stop == "declined":
            await self._accounts.report(self._journal, turn, self._turns, None)
            raise ModelFailed(model=self._model.name, why=f"it declined: {turn.text or 'no words'}")
        return turn

    def _heard(self, text: str) -> None:
        self._journal.tell("text", text=text)

    async def _reply(self, turn: Turn) -> None:
        """Carry out the calls of a turn that are not carried out yet, and answer it."""
        number = self._turns
        done = {found.id: found for found in outcomes(self._journal.records, number)}
        for place, call in enumerate(turn.calls):
            if call.id not in done:
                done[call.id] = await self._carried_out(call, number, place)
        found = tuple(done[call.id] for call in turn.calls)
        about = self._subjects.about(turn.calls, found)
        await self._accounts.report(self._journal, turn, number, about)
        nearly = None if self._warned else self._accounts.nearly()
        self._warned = self._warned or nearly is not None
        words = [prompt("cut")] if turn.stop == "length" else []
        words += [prompt("finish", limit=nearly)] if nearly else []
        reply = Reply(outcomes=found, text="\n\n".join(words))
        self._journal.write("reply", to=number, text=reply.text, nearly=nearly)
        self._talk.append(reply)

    async def _carried_out(self, call: ToolCall, number: int, place: int) -> ToolOutcome:
        self._journal.tell("tool_use", **vars(call))
        started = time.monotonic()
        if call.tool == READ_GUIDANCE.name:
            bare = guidance(call)
        else:
            bare = await self._forge.call(
                call,
                lambda text: self._journal.tell("progress", text=text),
                key=f"{self._journal.name}.{number}.{place}",
            )
        self._findings.learn(bare)
        self._subjects.learn(bare)
        outcome = ToolOutcome(**{**vars(bare), "brief": self._briefing.brief(call, bare)})
        seconds = round(time.monotonic() - started, 3)
        self._journal.write(
            "tool_result", turn=number, status=outcome.status, seconds=seconds, **vars(outcome)
        )
        return outcome

    def _ended(self, how: How, text: str) -> End:
        self._journal.write("end", how=how, text=text)
        return End(how=how, text=text)
