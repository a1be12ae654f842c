"""What README.md and tasks/README.md show of the task language loads, and has nothing odd in it."""

from __future__ import annotations

import re
from pathlib import Path

from agenteval.cli import main
from agenteval.lint import inspect_suite

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    """The examples in a language, in order."""
    found = _BLOCK.findall(path.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def test_the_task_of_the_readme_stands_in_a_new_suite(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    assert main(["new", "suite", str(folder)]) == 0
    (orders,) = [text for text in blocks(ROOT / "README.md", "yaml") if "# shop/orders.yaml" in text]
    (folder / "orders.yaml").write_text(orders, encoding="utf-8")
    inspection = inspect_suite(folder)
    assert inspection.warnings == ()
    assert [variant.label for variant in inspection.suite.variants][-2:] == ["cancel/A7", "cancel/B2"]


def test_the_parts_of_the_language_are_one_suite(tmp_path: Path) -> None:
    guide = ROOT / "tasks" / "README.md"
    head, tools, case, tasks = blocks(guide, "yaml")
    functions, python = blocks(guide, "python")
    find_item = (
        "  - {name: find_item, description: Finds an item., parameters: {type: object}, default: {returns: found}}\n"
    )
    settle = f"  - name: settle\n    description: Settles.\n    parameters: {{type: object}}\n    cases:\n{case}"
    files = {
        "suite.yaml": head.replace('["*.yaml"]', '["*.yaml", "pings.py"]'),
        "tools.yaml": f"{tools}{find_item}{settle}",
        "tasks.yaml": tasks,
        "bank.py": functions,
        "pings.py": python,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    inspection = inspect_suite(tmp_path)
    assert [warning.message for warning in inspection.warnings] == ["no task uses the tool 'settle'"]
    assert [variant.label for variant in inspection.suite.variants if variant.task == "ship-order"] == [
        "ship-order/few-lamp",
        "ship-order/few-mug",
        "ship-order/many-lamp",
        "ship-order/many-mug",
    ]
