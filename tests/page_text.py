"""An HTML page as the text that a reader gets, one line a block, so that it can be compared."""

from __future__ import annotations

from html.parser import HTMLParser

_BLOCKS = {
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "p",
    "li",
    "tr",
    "dt",
    "dd",
    "summary",
    "section",
    "div",
    "table",
    "figcaption",
}
_CELLS = {"td", "th"}
_UNREAD = {"style", "title", "svg"}


class Page(HTMLParser):
    """The text of a document, its elements by name, its ids, and what the pictures say instead of themselves."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self._parts: list[str] = []
        self._unread = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found[name] or "" for name in ("href", "src") if name in found]
        if tag == "svg":
            self._parts.append(f"\n[{found.get('aria-label')}]\n")
        self._unread += tag in _UNREAD
        self._parts += ["\n"] if tag in _BLOCKS else [" | "] if tag in _CELLS else ["[["] if tag == "mark" else []
        self._parts += [" / "] if tag == "br" else []

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in _UNREAD
        self._parts += ["\n"] if tag in _BLOCKS else ["]]"] if tag == "mark" else []

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._parts.append(data.replace("\n", " "))

    @property
    def text(self) -> str:
        """Lines without what only spaces them; the token that differs is in [[ ]]."""
        lines = (" ".join(line.split()).removeprefix("| ") for line in "".join(self._parts).splitlines())
        return "\n".join(line for line in lines if line) + "\n"
