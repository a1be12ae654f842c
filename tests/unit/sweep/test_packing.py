"""Servers share a GPU only as far as their memory fits."""

from __future__ import annotations

import pytest

from agenteval.sweep.packing import Budget

GB = 10**9


@pytest.mark.parametrize(
    ("running", "wanted", "admitted"),
    [
        ([], 500 * GB, True),
        ([40 * GB], 40 * GB, True),
        ([40 * GB, 40 * GB], 40 * GB, False),
        ([10 * GB, 10 * GB, 10 * GB], 1 * GB, False),
    ],
    ids=["the first always", "within", "too much memory", "too many servers"],
)
def test_a_server_is_admitted(running: list[int], wanted: int, admitted: bool) -> None:
    assert Budget(servers=3, memory_bytes=100 * GB).admits(running, wanted) is admitted
