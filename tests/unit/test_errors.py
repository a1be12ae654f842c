"""What messages make of the words of others."""

from __future__ import annotations

import pytest

from agenteval.errors import ServerDiedError


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        pytest.param("no answer", "stopped answering: no answer. Turns", id="no end of its own"),
        pytest.param("It went away.", "stopped answering: It went away. Turns", id="an end of its own"),
        pytest.param("Is it there?", "stopped answering: Is it there? Turns", id="a question"),
    ],
)
def test_a_reason_ends_once(reason: str, words: str) -> None:
    assert words in str(ServerDiedError(base_url="http://host", reason=reason))
