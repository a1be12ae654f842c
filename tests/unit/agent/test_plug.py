"""Graphs of one's own: found by name, run on the recorded client, read off at their end."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any, cast

import pytest
from fake_vllm import Call, Reply
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

from agenteval.agent import AgentResult, EpisodeContext, build_graph, load_factory, run_agent
from agenteval.client import EpisodeOverError
from agenteval.errors import AgentError, InputError
from agenteval.records import StopReason

from .conftest import Stage, StageBuilder

LOOK = Reply(calls=[Call("look", {"id": 7})])
FINISH = Reply(calls=[Call("finish", {"answer": "42"})])


def react(context: EpisodeContext) -> Any:
    """LangGraph's prebuilt agent on langchain-openai."""
    model = ChatOpenAI(
        model=context.model_name,
        base_url=context.base_url,
        api_key=cast(Any, context.api_key),
        http_client=context.http_client,
        max_retries=0,
    )
    with warnings.catch_warnings():
        # It moves to the package langchain, which nothing else here needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return create_react_agent(model, context.langchain_tools())


def run_react(stage: Stage) -> AgentResult | EpisodeOverError:
    """As the loop does: an end of the seam is a result."""
    try:
        return run_agent(react, stage.context)
    except EpisodeOverError as over:
        return over


def test_the_prebuilt_agent_is_recorded_as_the_default_one_is(stage: StageBuilder) -> None:
    """Same script, same contract: the model's outputs, the calls and their results are equal."""
    ours, theirs = stage([LOOK, Reply(text="It is 42.")]), stage([LOOK, Reply(text="It is 42.")])
    assert run_agent(build_graph, ours.context) == run_react(theirs)
    for left, right in zip(ours.turns(), theirs.turns(), strict=True):
        assert left.output_ids == right.output_ids
        assert [call.result for call in left.tool_calls] == [call.result for call in right.tool_calls]
        assert [call.call_id for call in left.tool_calls] == [call.call_id for call in right.tool_calls]
        assert set(left.request) >= {"seed", "temperature", "logprobs"}
    assert [call.server_call_id[:14] for _, call in theirs.recorder.calls] == ["chatcmpl-tool-"]


def test_calls_of_one_turn_run_in_order_although_the_tool_node_uses_threads(stage: StageBuilder) -> None:
    letters = "abcdef"
    episode = stage([Reply(calls=[Call("push", {"item": letter}) for letter in letters]), Reply(text="Done.")])
    run_react(episode)
    assert episode.toolbox.world == {"stack": list(letters)}
    assert [call.call_id for _, call in episode.recorder.calls] == [f"call_000_{n:02d}" for n in range(6)]


def test_the_finish_tool_ends_the_prebuilt_agent(stage: StageBuilder) -> None:
    episode = stage([LOOK, FINISH, LOOK])
    assert run_react(episode) == AgentResult(answer="42", stop_reason=StopReason.FINISH_TOOL)
    assert episode.recorder.failure is None
    assert len(episode.server.requests) == 2


def test_the_turn_limit_ends_the_prebuilt_agent(stage: StageBuilder) -> None:
    episode = stage([LOOK])
    over = run_react(episode)
    assert isinstance(over, EpisodeOverError)
    assert over.stop_reason is StopReason.MAX_TURNS
    assert len(episode.server.requests) == 4


def test_wrong_arguments_are_answered_by_the_mock_and_not_by_langchain(stage: StageBuilder) -> None:
    episode = stage([Reply(calls=[Call("look", {"id": "seven"})]), Reply(text="Sorry.")])
    run_react(episode)
    assert "must be of type" in (episode.recorder.calls[0][1].error or "")
    assert "must be of type" in episode.sent()[-1][-1]["content"]


def test_a_tool_can_be_called_without_langgraph(stage: StageBuilder) -> None:
    episode = stage([LOOK])
    episode.context.openai().chat.completions.create(model="fake", messages=[{"role": "user", "content": "look"}])
    look = next(tool for tool in episode.context.langchain_tools() if tool.name == "look")
    assert look.invoke({"id": 3}) == "order 3, call 1"
    assert look.invoke('{"id": 4}') == "order 4, call 2"
    assert "NaN is no JSON value" in look.invoke({"id": float("nan")})


def test_a_tool_called_before_any_model_call_belongs_to_no_turn(stage: StageBuilder) -> None:
    episode = stage([])
    look = next(tool for tool in episode.context.langchain_tools() if tool.name == "look")
    with pytest.raises(AgentError, match="outside of a turn"):
        look.invoke({"id": 3})


def test_a_graph_may_wrap_the_default_one(stage: StageBuilder) -> None:
    episode = stage([LOOK, FINISH])
    assert run_agent(lambda context: build_graph(context), episode.context).answer == "42"


class Ends:
    """A graph that only ends."""

    def __init__(self, final: Any) -> None:
        self.final = final

    def invoke(self, state: dict[str, Any], config: dict[str, Any]) -> Any:
        assert [message["role"] for message in state["messages"]] == ["system", "user"]
        assert config["recursion_limit"] > 4
        return self.final


@pytest.mark.parametrize(
    ("final", "answer"),
    [
        pytest.param({"messages": [AIMessage("It is 42.")]}, "It is 42.", id="a message of LangChain's"),
        pytest.param({"messages": [{"role": "assistant", "content": "It is 42."}]}, "It is 42.", id="a dict"),
        pytest.param({"messages": [{"role": "assistant", "content": None}]}, "", id="no content"),
        pytest.param(
            {"messages": [AIMessage([{"type": "text", "text": "It "}, {"type": "text", "text": "is."}])]},
            "It is.",
            id="content in parts",
        ),
        pytest.param({"messages": [AIMessage(["It ", {"type": "text", "text": "is."}])]}, "It is.", id="mixed parts"),
        pytest.param({"messages": [AIMessage([{"type": "image"}])]}, "", id="a part without text"),
        pytest.param({"messages": [ToolMessage("found", tool_call_id="x")]}, None, id="a tool's result is no answer"),
        pytest.param({"messages": [HumanMessage("hello")]}, None, id="the user's message is no answer"),
        pytest.param({"messages": [AIMessage("no")], "answer": "yes"}, "yes", id="its own answer"),
        pytest.param({"messages": [AIMessage("no")], "answer": None}, None, id="its own answer is none"),
    ],
)
def test_the_answer_is_read_off_the_final_state(stage: StageBuilder, final: Any, answer: str | None) -> None:
    result = run_agent(lambda _context: Ends(final), stage([]).context)
    assert result == AgentResult(answer=answer, stop_reason=StopReason.ANSWER)


def test_a_graph_may_say_why_it_stopped(stage: StageBuilder) -> None:
    final = {"messages": [AIMessage("")], "stop": "max_turns", "answer": None}
    assert run_agent(lambda _context: Ends(final), stage([]).context).stop_reason is StopReason.MAX_TURNS


@pytest.mark.parametrize("final", [None, "text", {}, {"messages": []}, {"messages": "text"}, []])
def test_an_end_without_messages_is_named(stage: StageBuilder, final: Any) -> None:
    with pytest.raises(TypeError, match="without a list of messages"):
        run_agent(lambda _context: Ends(final), stage([]).context)


def test_no_client_of_an_episode_leaks(stage: StageBuilder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_agent(build_graph, stage([LOOK, FINISH]).context)
        gc.collect()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Name of a module with the test's own source."""
    name = f"agent_under_test_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(request.param)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_no_name_is_the_default_graph() -> None:
    assert load_factory(None) is build_graph


@pytest.mark.parametrize("module", ["def build(context): ...\n"], indirect=True)
def test_a_factory_is_found_by_its_name(module: str) -> None:
    assert load_factory(f"{module}:build").__module__ == module


@pytest.mark.parametrize("name", ["", "module", "module:", ":factory", "a.b.c"])
def test_a_name_of_another_form_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"package\.module:factory"):
        load_factory(name)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        pytest.param("import no_such_package\n", "cannot be imported", id="an import that is missing"),
        pytest.param("def build(:\n", "SyntaxError", id="no Python"),
        pytest.param("1 / 0\n", "ZeroDivisionError", id="raises"),
        pytest.param("other = 1\n", "has no 'build'", id="no such function"),
        pytest.param("build = 1\n", "is no function", id="no function"),
    ],
    indirect=["module"],
)
def test_what_is_wrong_with_a_module_is_said(module: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_factory(f"{module}:build")


def test_a_module_that_is_nowhere_is_named() -> None:
    with pytest.raises(InputError, match="on PYTHONPATH"):
        load_factory("no_such_module:build")
    with pytest.raises(InputError, match="fails when it is imported: TypeError: the '"):
        load_factory("..relative:build")
