"""Text that is safe to show: what a model wrote must neither steer the terminal nor be read as markup.

Reads no records; knows no Textual.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from agenteval.compare import NEAR_TIE_NATS
from agenteval.log import printable

Shown = NewType("Shown", str)
"""Text that has been through `visible` or that this program wrote itself; printable, one line unless said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A piece of text with the part that differs, which may be empty."""

    before: Shown = Shown("")
    at: Shown = Shown("")
    after: Shown = Shown("")

    def plain(self) -> str:
        """All of it, the part that differs between marks."""
        return f"{self.before}«{self.at}»{self.after}" if self.at else f"{self.before}{self.after}"


def visible(text: str, limit: int | None = None) -> Shown:
    """The text with every unprintable character as its Python escape, and every backslash doubled.

    So two texts look alike only where they are equal, and an escape sequence is read instead of obeyed. Direction
    marks and joiners count as unprintable.

    Args:
        text: Anything, lone surrogates included.
        limit: Characters of the text to show, at least 1; an ellipsis stands for the rest. None shows all.
    """
    cut = text if limit is None or len(text) <= limit else text[: limit - 1]
    shown = "".join(map(_visible_character, cut))
    return Shown(shown if len(cut) == len(text) else shown + "…")


def _visible_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return printable(character)


def visible_tail(text: str, limit: int) -> Shown:
    """The end of the text, as `visible`; an ellipsis stands for what comes before."""
    return visible(text) if len(text) <= limit else Shown("…" + visible(text[len(text) - limit + 1 :]))


def visible_lines(text: str, limit: int) -> Shown:
    """As `visible`, with line ends kept."""
    cut = text[:limit]
    shown = "\n".join(visible(line) for line in cut.split("\n"))
    return Shown(shown if len(cut) == len(text) else f"{shown}… ({len(text):,} characters in all)")


def excerpt_around(text: str, start: int, end: int, window: int) -> Excerpt:
    """A text's part from start to end with some characters on both sides."""
    return Excerpt(
        before=visible_tail(text[:start], window),
        at=visible(text[start:end], window),
        after=visible(text[end:], window),
    )


def quoted(text: str | None, limit: int = 24) -> Shown:
    """A token between quotes, so that its spaces show; a dash where there is none."""
    return Shown("-") if text is None else Shown(f'"{visible(text, limit)}"')


def logprob(value: float | None) -> Shown:
    """Nine significant digits: two that look alike are the same 32-bit number."""
    return Shown("-" if value is None else f"{value:.9g}")


def margin(value: float | None) -> Shown:
    """A margin in nats with the word for it."""
    if value is None:
        return Shown("unknown")
    word = "tie" if value <= 0 else "near tie" if value < NEAR_TIE_NATS else "confident"
    return Shown(f"{value:.3g} {word}")


def count(value: int | None) -> Shown:
    """A count; unknown is not zero."""
    return Shown("unknown" if value is None else f"{value:,}")


def share(value: float | None) -> Shown:
    """A share of 1 to the nearest percent; 100% means all of them and 0% none."""
    if value is None:
        return Shown("-")
    nearest = round(100 * value)
    return Shown(f"{nearest if value in (0, 1) else min(max(nearest, 1), 99)}%")


def counted(number: int, noun: str) -> Shown:
    """How many of something whose plural takes an s."""
    return Shown(f"{number:,} {noun}{'' if number == 1 else 's'}")


def passed(value: bool | None) -> Shown:
    """What the grades of an episode come to."""
    return Shown("not graded" if value is None else "passed" if value else "failed")


def moment(value: datetime) -> Shown:
    """A moment in the reader's own time zone, to the minute."""
    return Shown(f"{value.astimezone():%m-%d %H:%M}")
