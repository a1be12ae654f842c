"""Tools of a made-up library domain, in the shape of tau2-bench's; read and never run."""

# ruff: noqa: F821, UP006, UP035, UP045
from typing import List, Literal, Optional

from tau2.environment.toolkit import ToolKitBase, ToolType, is_discoverable_tool, is_tool


class LibraryTools(ToolKitBase):
    def _hidden(self) -> None: ...

    @is_tool(ToolType.READ)
    def get_reader(self, reader_id: str) -> dict:
        """Look a reader up.

        Args:
            reader_id: The id, such as 'r1'.
                It never changes.

        Returns:
            The reader.
        """

    @is_tool(ToolType.WRITE)
    def renew(self, book_id: str, weeks: int = 2, how: Optional[Literal["mail", "desk"]] = None) -> None:
        """Renew a loan."""

    @is_tool(ToolType.WRITE)
    def pay(self, reader_id: str, coins: List[Coin | dict], note: Note = None) -> None:
        """Pay a fee."""

    @is_tool(ToolType.WRITE, mutates_state=False)
    def call_librarian(self, summary: str) -> None:
        """Hand over to a person."""

    @is_discoverable_tool(ToolType.WRITE)
    def burn(self, book_id: str) -> None:
        """Kept from the agent."""
