"""One attempt: an agent, its tools and the recorded client, from the first request to the grade."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from agenteval.agent import AgentResult, EpisodeContext, GraphFactory, Toolbox, run_agent
from agenteval.client import (
    AsyncRecordingTransport,
    EpisodeOverError,
    EpisodeRecorder,
    Gate,
    RecordingTransport,
    RequestRules,
    TurnIdentity,
)
from agenteval.contract import Contract
from agenteval.errors import AgentError, AgentevalError, InputError, ServerError, StoreError
from agenteval.grade import Played, grade_episode, has_passed
from agenteval.loop.stop import StoppedError, StopSwitch
from agenteval.records import Episode, EpisodePlan, EpisodeStatus, Grade, StopReason
from agenteval.server import Server
from agenteval.spec import TaskVariant
from agenteval.store import RunWriter

HEALTH_TIMEOUT_S = 30.0
"""A server that has just failed a request and does not say within this time that it is healthy counts as dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSession:
    """A healthy server and what its episodes share."""

    boot_id: str
    server: Server
    model_name: str
    gate: Gate
    connection: httpx.BaseTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSetting:
    """What all episodes of a run have in common."""

    contract: Contract
    factory: GraphFactory
    writer: RunWriter
    stop: StopSwitch


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An ended episode and its judgement."""

    episode: Episode
    grades: tuple[Grade, ...]
    passed: bool | None


def run_episode(plan: EpisodePlan, variant: TaskVariant, setting: EpisodeSetting, boot: BootSession) -> Attempt:
    """Make one attempt, store it whole, and grade it.

    Raises:
        InputError: If the agent contradicts the contract; every other episode would too.
        StoreError: If a turn cannot be stored.
    """
    identity = TurnIdentity(run_id=plan.run_id, boot_id=boot.boot_id, episode_id=plan.episode_id, kind="episode")
    recorder = EpisodeRecorder(identity, setting.writer.append)
    toolbox = Toolbox(
        variant,
        clock=setting.contract.tools.clock,
        finish_tool=variant.settings.finish_tool,
        recorder=recorder,
    )
    started_at, started = datetime.now(UTC), time.monotonic()
    try:
        outcome = _attempt(plan, variant, setting, boot, (recorder, toolbox))
    finally:
        # Also where the run cannot go on: the turn has been made.
        recorder.end_turn()
    episode = Episode(
        plan=plan,
        boot_id=boot.boot_id,
        status=EpisodeStatus.NOT_RUN if isinstance(outcome, AgentevalError) else EpisodeStatus.FINISHED,
        stop_reason=_stop_reason(outcome),
        message=str(outcome) if isinstance(outcome, AgentevalError) else None,
        answer=None if isinstance(outcome, AgentevalError) else outcome.answer,
        world=toolbox.world,
        turns=recorder.turns,
        started_at=started_at,
        elapsed_s=time.monotonic() - started,
    )
    grades: tuple[Grade, ...] = ()
    if episode.status is EpisodeStatus.FINISHED:
        played = Played.of(episode, calls=recorder.calls, output_tokens=recorder.output_tokens)
        grades = grade_episode(variant, played)
    for grade in grades:
        setting.writer.append(grade)
    setting.writer.append(episode)()
    return Attempt(episode=episode, grades=grades, passed=has_passed(grades))


def _attempt(
    plan: EpisodePlan,
    variant: TaskVariant,
    setting: EpisodeSetting,
    boot: BootSession,
    bound: tuple[EpisodeRecorder, Toolbox],
) -> AgentResult | AgentevalError:
    """How the agent ended, or what kept the episode from an end."""
    recorder, toolbox = bound
    settings = variant.settings
    rules = RequestRules.of(setting.contract, plan, model_name=boot.model_name, max_tokens=settings.max_tokens)

    def check_over() -> None:
        setting.stop.check()
        if toolbox.is_finished and toolbox.follow_ups_left:
            raise AgentError(
                episode=plan.label,
                reason="it asked the model again after the finish tool, although the user's next message was to "
                "follow; a graph for tasks with follow_ups must end when context.toolbox.is_finished",
            )
        if toolbox.is_finished:
            raise EpisodeOverError(StopReason.FINISH_TOOL, "the finish tool was called")
        if recorder.turns >= settings.max_turns:
            raise EpisodeOverError(StopReason.MAX_TURNS, f"{settings.max_turns} turns were made")

    transport = RecordingTransport(
        connection=boot.connection,
        gate=boot.gate,
        rules=rules,
        recorder=recorder,
        check_over=check_over,
        base_url=boot.server.base_url,
    )
    # The client for code that awaits needs no closing: its transport holds nothing of its own.
    with httpx.Client(transport=transport) as http_client:
        context = EpisodeContext(
            base_url=f"{boot.server.base_url}/v1",
            api_key=boot.server.api_key,
            model_name=boot.model_name,
            http_client=http_client,
            http_async_client=httpx.AsyncClient(transport=AsyncRecordingTransport(transport)),
            toolbox=toolbox,
            settings=settings,
            start_messages=variant.messages,
            follow_ups=variant.follow_ups,
        )
        try:
            result = run_agent(setting.factory, context)
        # The agent is the user's code, or a library's: whatever it raises, the episode must end and be recorded. A
        # Ctrl-C never arrives here: signals go to the main thread.
        except BaseException as error:
            # A library may quote the request's headers.
            reason = f"{type(error).__name__}: {error}{_place_of(error)}".replace(boot.server.api_key, "(key)")
            failure = recorder.failure or AgentError(episode=plan.label, reason=reason)
            return _settled(failure, toolbox)
    return result if recorder.failure is None else _settled(recorder.failure, toolbox)


def _place_of(error: BaseException) -> str:
    """Where an error was raised, as ` (file.py:line)`: the traceback itself ends in the agent's thread."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _settled(failure: AgentevalError, toolbox: Toolbox) -> AgentResult | AgentevalError:
    """An end that every repeat would reach is a result; what the run cannot go on with is raised."""
    if isinstance(failure, EpisodeOverError):
        return AgentResult(answer=toolbox.answer, stop_reason=failure.stop_reason)
    if isinstance(failure, InputError | StoreError):
        raise failure
    return failure


def _stop_reason(outcome: AgentResult | AgentevalError) -> StopReason:
    if isinstance(outcome, AgentResult):
        return outcome.stop_reason
    if isinstance(outcome, StoppedError):
        return StopReason.STOPPED
    return StopReason.SERVER if isinstance(outcome, ServerError) else StopReason.AGENT


def server_died(attempt: Attempt, boot: BootSession) -> bool:
    """Whether an attempt ended because its server is gone, and not only because one answer was bad.

    A server whose engine has died still runs for a moment and says so; what no longer says that it is healthy is gone.
    """
    if attempt.episode.stop_reason is not StopReason.SERVER:
        return False
    try:
        health = httpx.get(f"{boot.server.base_url}/health", timeout=HEALTH_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError:
        return True
    return health.status_code != httpx.codes.OK or not boot.server.is_alive()
