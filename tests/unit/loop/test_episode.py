"""One attempt end to end on a stand-in server: how it ends, what is stored of it, whoever wrote the graph."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import run_records as made
from fake_vllm import Call, FakeConfig, FakeVllm, Faults, Reply, Script

from agenteval.agent import EpisodeContext, GraphFactory, build_graph
from agenteval.cli.progress import RunProgress
from agenteval.client import Gate, open_connection
from agenteval.errors import AgentevalError, RequestContradictsContractError
from agenteval.loop import StopSwitch
from agenteval.loop import run as run_module
from agenteval.loop.episode import Attempt, BootSession, EpisodeSetting, run_episode, server_died
from agenteval.records import Episode, EpisodeStatus, StopReason, Turn
from agenteval.server import OutsideServer
from agenteval.spec import CalledCheck, ErrorFault, TaskVariant, TogetherCheck, TokensCheck
from agenteval.store import RunReader, RunWriter

FINISH = Reply(calls=[Call("finish", {"answer": "42"})])
LOOK = Reply(calls=[Call("look", {"id": 7})])


@dataclass
class Stored:
    """What the store holds of an episode."""

    kinds: list[str] = field(default_factory=list)
    """Of its stored, in the order in which they became durable."""
    turns: list[Turn] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)


DATABASE = Path("runs.duckdb")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the test's own, for its database."""
    monkeypatch.chdir(tmp_path)


@contextmanager
def storing(stored: Stored | None = None) -> Iterator[RunWriter]:
    """The writer of a run; what it has stored is read back at its end."""
    stored = stored or Stored()
    with RunWriter(DATABASE, made.run(made.contract())) as writer:
        yield writer
        writer.flush()
        kinds = [json.loads(line)["record"] for line in writer.journal.read_text().splitlines()]
        stored.kinds = [kind for kind in kinds if kind not in ("Journal", "Run")]
    reader = RunReader(path=DATABASE, run_id=made.RUN)
    stored.episodes = reader.episodes()
    stored.turns = list(reader.turns(made.plan().episode_id))


@contextmanager
def boot_on(server: FakeVllm) -> Iterator[BootSession]:
    connection = open_connection(1)
    outside = OutsideServer(server.base_url, None)
    try:
        yield BootSession(
            boot_id=made.BOOT,
            server=outside,
            model_name=outside.model_name,
            gate=Gate(1),
            connection=connection,
        )
    finally:
        connection.close()


def setting_for(
    writer: RunWriter, factory: GraphFactory = build_graph, stop: StopSwitch | None = None
) -> EpisodeSetting:
    return EpisodeSetting(contract=made.contract(), factory=factory, writer=writer, stop=stop or StopSwitch())


def attempt(
    replies: list[Reply], factory: GraphFactory = build_graph, variant: TaskVariant = made.VARIANT, **config: Any
) -> tuple[Attempt | AgentevalError, Stored, FakeVllm]:
    """One episode on a server of its own, and what was stored of it."""
    stored = Stored()
    with FakeVllm(FakeConfig(script=(Script("", replies),), **config)) as server, boot_on(server) as boot:
        with storing(stored) as writer:
            try:
                result: Attempt | AgentevalError = run_episode(made.plan(), variant, setting_for(writer, factory), boot)
            except AgentevalError as error:
                result = error
        return result, stored, server


def ended(*args: Any, **fields: Any) -> Episode:
    result, stored, _ = attempt(*args, **fields)
    assert isinstance(result, Attempt), result
    assert stored.episodes == [result.episode]
    return result.episode


def test_a_finished_episode_is_stored_turn_by_turn_and_then_whole() -> None:
    result, stored, _ = attempt([LOOK, FINISH])
    assert isinstance(result, Attempt)
    assert stored.kinds == ["Turn", "Turn", "Episode"]
    assert stored.episodes == [result.episode]
    assert (result.episode.answer, result.episode.turns) == ("42", 2)
    assert [[call.tool for call in turn.tool_calls] for turn in stored.turns] == [["look"], ["finish"]]


TALK = replace(made.VARIANT, follow_ups=("And order 8?",))


def test_an_episode_with_follow_ups_is_one_episode() -> None:
    result, stored, _ = attempt([FINISH, LOOK, Reply(calls=[Call("finish", {"answer": "43"})])], variant=TALK)
    assert isinstance(result, Attempt)
    assert (result.episode.answer, result.episode.turns) == ("43", 3)
    assert stored.kinds == ["Turn", "Turn", "Turn", "Episode"]


def test_turns_that_run_out_after_a_follow_up_leave_no_answer() -> None:
    episode = ended([FINISH, LOOK], variant=TALK)
    assert (episode.status, episode.stop_reason) == (EpisodeStatus.FINISHED, StopReason.MAX_TURNS)
    assert (episode.answer, episode.turns) == (None, made.SETTINGS.max_turns)


def test_a_graph_that_does_not_end_for_the_users_next_message_is_told_so() -> None:
    """It would put words after the finish tool that no user has asked for."""

    def factory(context: EpisodeContext) -> Any:
        def invoke(state: Any, config: Any) -> Any:
            ask(context, tools=context.toolbox.schemas())
            context.toolbox.call("finish", '{"answer": "1"}', "call_000_00")
            ask(context)
            return {"messages": [{"role": "assistant", "content": "never"}]}

        return SimpleNamespace(invoke=invoke)

    episode = ended([FINISH], factory, variant=TALK)
    assert (episode.status, episode.stop_reason, episode.turns) == (EpisodeStatus.NOT_RUN, StopReason.AGENT, 1)
    assert episode.message is not None
    assert "must end when context.toolbox.is_finished" in episode.message


def test_a_tasks_own_limits_are_the_ones_that_hold() -> None:
    settings = made.SETTINGS.model_copy(update={"max_turns": 2, "max_tokens": 170, "parallel_tool_calls": False})
    result, _, server = attempt([LOOK], variant=replace(made.VARIANT, settings=settings))
    assert isinstance(result, Attempt)
    assert (result.episode.stop_reason, result.episode.turns) == (StopReason.MAX_TURNS, 2)
    assert {request["max_completion_tokens"] for request in server.requests} == {170}
    assert {request["parallel_tool_calls"] for request in server.requests} == {False}


def test_checks_see_the_tokens_and_the_calls_of_every_turn() -> None:
    checks = (
        TokensCheck(kind="tokens", at_most=1),
        CalledCheck(kind="called", tool="look", where="turn == 1 && args.id == 7"),
        TogetherCheck(kind="together", tools=("look", "push")),
    )
    both = Reply(calls=[Call("look", {"id": 7}), Call("push", {"item": "a"})])
    result, stored, _ = attempt([LOOK, both, FINISH], variant=replace(made.VARIANT, checks=checks))
    assert isinstance(result, Attempt)
    written = sum(len(turn.output_ids) for turn in stored.turns)
    assert [grade.passed for grade in result.grades] == [False, True, True]
    assert result.grades[0].reason == f"{written} output tokens; wanted at most 1"
    assert stored.kinds == ["Turn"] * 3 + ["Grade"] * 3 + ["Episode"]


def test_a_fault_that_fired_is_stored_with_its_call() -> None:
    fault = ErrorFault(kind="error", tool="look", at=(1,), message="busy")
    _, stored, _ = attempt([LOOK, LOOK, FINISH], variant=replace(made.VARIANT, faults=(fault,)))
    calls = [call for turn in stored.turns for call in turn.tool_calls]
    assert [(call.tool, call.fault, call.error) for call in calls] == [
        ("look", "error#0", "busy"),
        ("look", None, None),
        ("finish", None, None),
    ]
    assert all(call.is_repeatable for call in calls)


def raises(error: BaseException) -> GraphFactory:
    """A graph that asks once, then raises."""

    def factory(context: EpisodeContext) -> Any:
        def invoke(state: Any, config: Any) -> Any:
            ask(context)
            raise error

        return SimpleNamespace(invoke=invoke)

    return factory


def swallows(times: int) -> GraphFactory:
    """A graph that asks several times, ignores every error, and answers whatever happens."""

    def factory(context: EpisodeContext) -> Any:
        def invoke(state: Any, config: Any) -> Any:
            for _ in range(times):
                try:
                    ask(context)
                except Exception:
                    continue
            return {"messages": [{"role": "assistant", "content": "All is well."}]}

        return SimpleNamespace(invoke=invoke)

    return factory


def contradicts(context: EpisodeContext) -> Any:
    """A graph whose second request asks for another temperature."""

    def invoke(state: Any, config: Any) -> Any:
        ask(context)
        ask(context, temperature=1.0)

    return SimpleNamespace(invoke=invoke)


def ask(context: EpisodeContext, **fields: Any) -> None:
    body = {"messages": context.messages(), **fields}
    context.http_client.post(f"{context.base_url}/chat/completions", json=body).raise_for_status()


@pytest.mark.parametrize("error", [ValueError("no such key"), SystemExit(3), RecursionError("deep")])
def test_a_graph_that_raises_is_not_run_and_its_turns_are_kept(error: BaseException) -> None:
    result, stored, _ = attempt([Reply(text="hm")], raises(error))
    assert isinstance(result, Attempt)
    episode = result.episode
    assert (episode.status, episode.stop_reason) == (EpisodeStatus.NOT_RUN, StopReason.AGENT)
    assert episode.message is not None
    assert episode.message.endswith("Mend the graph, then run again.")
    assert type(error).__name__ in episode.message
    assert (len(stored.turns), episode.turns, result.grades, result.passed) == (1, 1, (), None)


def test_a_factory_that_raises_is_not_run() -> None:
    def factory(_context: EpisodeContext) -> Any:
        raise KeyError("model")

    episode = ended([], factory)
    assert episode.stop_reason is StopReason.AGENT
    assert "KeyError: 'model' (test_episode.py:" in (episode.message or "")


def test_a_graph_that_swallows_an_error_of_the_server_is_still_not_run() -> None:
    episode = ended([Reply(text="hm")], swallows(3), faults=Faults(error_on=frozenset({2})))
    assert (episode.status, episode.stop_reason) == (EpisodeStatus.NOT_RUN, StopReason.SERVER)
    assert episode.answer is None


def test_a_graph_that_swallows_the_end_is_ended_all_the_same() -> None:
    result, stored, server = attempt([Reply(text="hm")], swallows(9))
    assert isinstance(result, Attempt)
    assert (result.episode.stop_reason, result.episode.answer) == (StopReason.MAX_TURNS, None)
    assert len(server.requests) == len(stored.turns) == made.SETTINGS.max_turns


def test_a_contradiction_ends_the_run_and_keeps_the_turn_before() -> None:
    result, stored, _ = attempt([Reply(text="hm")], contradicts)
    assert isinstance(result, RequestContradictsContractError)
    assert [turn.turn for turn in stored.turns] == [0]


def test_a_swallowed_contradiction_ends_the_run_too() -> None:
    def factory(context: EpisodeContext) -> Any:
        def invoke(state: Any, config: Any) -> Any:
            with pytest.raises(RequestContradictsContractError):
                ask(context, n=3)
            return {"messages": [{"role": "assistant", "content": "fine"}]}

        return SimpleNamespace(invoke=invoke)

    assert isinstance(attempt([], factory)[0], RequestContradictsContractError)


def test_a_full_context_is_an_end_like_another() -> None:
    assert ended([LOOK], max_model_len=300).stop_reason is StopReason.CONTEXT_FULL


def test_asked_twice_an_agent_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "FORCED_WAIT_S", 0.1)
    hangs, goes_on, stop = threading.Event(), threading.Event(), StopSwitch()

    def factory(_context: EpisodeContext) -> Any:
        hangs.set()
        goes_on.wait(30)
        raise TimeoutError

    def ask_twice() -> None:
        hangs.wait(30)
        stop.ask()
        stop.ask()

    asker = threading.Thread(target=ask_twice)
    asker.start()
    with FakeVllm() as server, boot_on(server) as boot, storing() as writer:
        setting = setting_for(writer, factory, stop)
        plans, variants = [made.plan(0), made.plan(1)], {("task", "base"): made.VARIANT}
        workers = run_module._run_on_boot(plans, variants, setting, boot, RunProgress(is_quiet=True))
        assert (workers.finished, workers.started, workers.has_halted) == (0, 1, True)
        goes_on.set()
        asker.join()


def test_after_a_stop_nothing_is_asked() -> None:
    stop = StopSwitch()
    stop.ask()
    with FakeVllm() as server, boot_on(server) as boot, storing() as writer:
        episode = run_episode(made.plan(), made.VARIANT, setting_for(writer, stop=stop), boot).episode
        assert server.requests == []
    assert (episode.status, episode.stop_reason) == (EpisodeStatus.NOT_RUN, StopReason.STOPPED)


@pytest.mark.parametrize(
    ("stop_reason", "healthy", "died"),
    [
        pytest.param(StopReason.SERVER, True, False, id="one bad answer"),
        pytest.param(StopReason.SERVER, False, True, id="unhealthy: its engine has died"),
        pytest.param(StopReason.AGENT, False, False, id="the agent's own fault"),
    ],
)
def test_a_server_has_died_when_it_no_longer_says_it_is_healthy(
    stop_reason: StopReason, healthy: bool, died: bool
) -> None:
    with FakeVllm(FakeConfig(faults=Faults(unhealthy=not healthy))) as server, boot_on(server) as boot:
        assert server_died(failed(stop_reason), boot) is died


def test_a_server_that_does_not_listen_has_died() -> None:
    with FakeVllm() as server, boot_on(server) as boot:
        server.close()
        assert server_died(failed(StopReason.SERVER), boot)


def failed(stop_reason: StopReason) -> Attempt:
    episode = replace(made.episode(made.plan()), status=EpisodeStatus.NOT_RUN, stop_reason=stop_reason)
    return Attempt(episode=episode, grades=(), passed=None)


def test_nothing_of_an_episode_reaches_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    attempt([LOOK, FINISH])
    assert capsys.readouterr().out == ""
