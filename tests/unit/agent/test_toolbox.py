"""The tools of an episode: order among threads, and what is recorded of a call."""

from __future__ import annotations

import dataclasses
import json
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
import run_records as made
from fake_vllm import Call, Reply

from agenteval.agent import toolbox as toolbox_module

from .conftest import Stage, StageBuilder

LETTERS = "abcdefgh"


def one_turn(stage: StageBuilder, letters: str = LETTERS, **options: Any) -> Stage:
    """An episode whose model has just asked for as many pushes as there are letters."""
    episode = stage([Reply(calls=[Call("push", {"item": letter}) for letter in letters])], **options)
    client = episode.context.openai()
    client.chat.completions.create(
        model="fake",
        messages=episode.context.messages(),  # type: ignore[arg-type]
        tools=episode.toolbox.schemas(),  # type: ignore[arg-type]
    )
    return episode


@pytest.mark.parametrize("seed", range(4))
def test_threads_in_any_order_answer_in_the_models_order(stage: StageBuilder, seed: int) -> None:
    episode = one_turn(stage)
    places = list(range(len(LETTERS)))
    random.Random(seed).shuffle(places)

    def push(place: int) -> None:
        episode.toolbox.call("push", f'{{"item": "{LETTERS[place]}"}}', f"call_000_{place:02d}")

    threads = [threading.Thread(target=push, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert episode.toolbox.world == {"stack": list(LETTERS)}
    assert [call.call for _, call in episode.recorder.calls] == list(range(len(LETTERS)))


def test_a_call_that_the_agent_drops_holds_the_others_only_for_a_while(
    stage: StageBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolbox_module, "ORDER_WAIT_S", 0.02)
    episode = one_turn(stage, "ab")
    assert episode.toolbox.call("push", '{"item": "b"}', "call_000_01") == "pushed"
    assert [(call.call, call.call_id) for _, call in episode.recorder.calls] == [(0, "call_000_01")]


@pytest.mark.parametrize("call_id", ["", "chatcmpl-tool-123", "call_", "call_x_y", "other_000_07"])
def test_an_id_that_is_not_ours_does_not_wait(stage: StageBuilder, call_id: str) -> None:
    assert one_turn(stage).toolbox.call("look", '{"id": 1}', call_id) == "order 1, call 1"


def test_a_call_records_the_state_it_saw_and_what_it_changed(stage: StageBuilder) -> None:
    episode = one_turn(stage)
    for place in range(2):
        episode.toolbox.call("push", '{"item": "x"}', f"call_000_{place:02d}")
    (_, first), (_, second) = episode.recorder.calls
    assert first.state_digest != second.state_digest
    assert first.world_patch == ({"op": "replace", "path": "/stack", "value": ["x"]},)
    assert made.VARIANT.world == {"stack": []}, "the task's own world is not changed"


def spoil_world(stage: Stage) -> None:
    stage.toolbox.world["stack"].append("mine")


def spoil_schemas(stage: Stage) -> None:
    for schema in stage.toolbox.schemas():
        schema["function"]["parameters"].clear()


def spoil_mocks(stage: Stage) -> None:
    for mock in stage.toolbox.mocks.values():
        mock.parameters.clear()


def spoil_langchain_tools(stage: Stage) -> None:
    for tool in stage.context.langchain_tools():
        tool.args_schema.clear()  # type: ignore[union-attr]


def spoil_messages(stage: Stage) -> None:
    stage.context.messages()[0]["content"] = "Do nothing."


@pytest.mark.parametrize("spoil", [spoil_world, spoil_schemas, spoil_mocks, spoil_langchain_tools, spoil_messages])
def test_what_an_agent_does_to_what_it_is_given_reaches_nothing_else(
    stage: StageBuilder, spoil: Callable[[Stage], None]
) -> None:
    episode = one_turn(stage)
    variant = json.dumps([made.VARIANT.fields(), [tool.parameters for tool in made.VARIANT.tools]])
    before = episode.toolbox.world, episode.toolbox.schemas(), episode.context.messages()
    spoil(episode)
    assert (episode.toolbox.world, episode.toolbox.schemas(), episode.context.messages()) == before
    assert json.dumps([made.VARIANT.fields(), [tool.parameters for tool in made.VARIANT.tools]]) == variant


def test_an_agent_sees_the_parameters_in_the_order_in_which_they_are_written(stage: StageBuilder) -> None:
    tool = made.VARIANT.tools[0]
    written = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
    variant = dataclasses.replace(made.VARIANT, tools=(tool.model_copy(update={"parameters": written}),))
    (schema,) = [s for s in stage([], variant=variant).toolbox.schemas() if s["function"]["name"] == tool.name]
    assert json.dumps(schema["function"]["parameters"]) == json.dumps(written)


def test_a_mock_that_cannot_answer_is_recorded_as_broken_and_one_that_refuses_is_not(stage: StageBuilder) -> None:
    """The first lacks a list to push to; the second refuses arguments of another type."""
    episode = one_turn(stage, variant=dataclasses.replace(made.VARIANT, world={}))
    for place, arguments in enumerate(('{"item": "a"}', '{"item": 1}')):
        episode.toolbox.call("push", arguments, f"call_000_{place:02d}")
    assert [(call.error is not None, call.is_broken) for _, call in episode.recorder.calls] == [
        (True, True),
        (True, False),
    ]
