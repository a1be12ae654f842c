"""Sets that keep the order in which their items came; Python's own order differs from process to process."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, KeysView, MutableSet, Set
from types import GenericAlias
from typing import Any, ClassVar, Self

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "-": operator.sub,
    "&=": operator.iand,
    "|=": operator.ior,
    "^=": operator.ixor,
    "-=": operator.isub,
}


class _Ordered(Set[Any]):
    """What both kinds have."""

    __slots__ = ("_items",)
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def __init__(self, items: Iterable[Hashable] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if isinstance(other, Set) else NotImplemented

    def copy(self) -> Self:
        """The same items in a set of their own."""
        return type(self)(self)

    __copy__ = copy

    def union(self, *others: Iterable[Any]) -> Self:
        """These items, then those of the others."""
        return type(self)(itertools.chain(self, *others))

    def intersection(self, *others: Iterable[Any]) -> Self:
        """These items that all others have too."""
        kept = [OrderedFrozenset(items) for items in others]
        return type(self)(item for item in self if all(item in items for items in kept))

    def difference(self, *others: Iterable[Any]) -> Self:
        """These items that none of the others has."""
        gone = OrderedFrozenset().union(*others)
        return type(self)(item for item in self if item not in gone)

    def symmetric_difference(self, other: Iterable[Any]) -> Self:
        """Items that only one of the two has."""
        second = OrderedFrozenset(other)
        return type(self)([*self.difference(second), *second.difference(self)])

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether the other has all of these items."""
        return self <= OrderedFrozenset(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether all of the other's items are here."""
        return self >= OrderedFrozenset(other)


class OrderedFrozenset(_Ordered):
    """A frozenset whose order is that of its items; what `frozenset` means in a suite's functions."""

    __slots__ = ()

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        return f"frozenset({{{', '.join(map(repr, self))}}})" if self else "frozenset()"


class OrderedSet(_Ordered, MutableSet[Any]):
    """A set whose order is that in which its items came; what `set` means in a suite's functions."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"

    def add(self, item: Hashable) -> None:
        """Put an item last, where it is not there."""
        self._items.setdefault(item)

    def discard(self, item: Hashable) -> None:
        """Take an item out, where it is there."""
        self._items.pop(item, None)

    def update(self, *others: Iterable[Any]) -> None:
        """Add the others' items."""
        for items in others:
            self._items.update(dict.fromkeys(items))

    def clear(self) -> None:
        """Take all items out."""
        self._items = {}

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keep what all others have too."""
        self._items = self.intersection(*others)._items

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Take the others' items out."""
        self._items = self.difference(*others)._items

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        """Keep what only one of the two has."""
        self._items = self.symmetric_difference(other)._items


for _class, _name in ((OrderedFrozenset, "frozenset"), (OrderedSet, "set")):
    _class.__name__ = _class.__qualname__ = _name


def operate(symbol: str, left: Any, right: Any) -> Any:
    """An operator that sets have; of a map's keys or items, whose result would be one of Python's own sets, too."""
    if isinstance(left, KeysView | ItemsView) or isinstance(right, KeysView | ItemsView):
        # A set is changed in place, as its other holders expect.
        left = left if isinstance(left, OrderedSet) and symbol.endswith("=") else OrderedSet(left)
        right = OrderedSet(right)
    return _OPERATORS[symbol](left, right)


def operate_item(symbol: str, holder: Any, key: Any, right: Any) -> None:
    """The same where what changes is an item."""
    holder[key] = operate(symbol, holder[key], right)


def operate_attribute(symbol: str, holder: Any, name: str, right: Any) -> None:
    """The same where what changes is an attribute."""
    setattr(holder, name, operate(symbol, getattr(holder, name), right))
