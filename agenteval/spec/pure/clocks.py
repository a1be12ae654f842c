"""Dates and times without the machine's clock and time zone; what `datetime` means in a suite's functions."""

from __future__ import annotations

import datetime as real
import re
from typing import Any, NoReturn, Self

_CLOCK = "reads the machine's clock; use the clock that the function is given"
_ZONE = "reads the machine's time zone; name the zone that is meant"


class MachineStateError(RuntimeError):
    """A function asks for the machine's clock or time zone."""


class _DateType(type):
    """Instances are those of the library's own class too, which its methods give."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1]) if cls in _OURS else super().__instancecheck__(instance)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.__mro__[1]) if cls in _OURS else super().__subclasscheck__(kind)


class _Date(real.date, metaclass=_DateType):
    @classmethod
    def today(cls) -> NoReturn:
        raise MachineStateError(f"today {_CLOCK}")

    @classmethod
    def fromtimestamp(cls, _seconds: float, /) -> NoReturn:
        raise MachineStateError(f"fromtimestamp of a date {_ZONE}")

    def strftime(self, form: str, /) -> str:
        return super().strftime(_checked(form))


class _Time(real.time, metaclass=_DateType):
    def strftime(self, form: str, /) -> str:
        return super().strftime(_checked(form))


class _Datetime(real.datetime, metaclass=_DateType):
    @classmethod
    def now(cls, *_zone: Any, **_zones: Any) -> NoReturn:
        raise MachineStateError(f"now {_CLOCK}")

    today = utcnow = now

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: real.tzinfo | None = None) -> Self:
        if tz is None:
            raise MachineStateError(f"fromtimestamp without a zone {_ZONE}")
        return super().fromtimestamp(timestamp, tz)

    @classmethod
    def utcfromtimestamp(cls, timestamp: float, /) -> Self:
        return cls.fromtimestamp(timestamp, real.UTC).replace(tzinfo=None)

    def timestamp(self) -> float:
        if self.utcoffset() is None:
            raise MachineStateError(f"timestamp of a time without a zone {_ZONE}")
        return super().timestamp()

    def astimezone(self, tz: real.tzinfo | None = None) -> Self:
        if tz is None or self.utcoffset() is None:
            raise MachineStateError(f"astimezone without two zones {_ZONE}")
        return super().astimezone(tz)

    @classmethod
    def strptime(cls, text: str, form: str, /) -> Self:
        if "Z" in _directives(form):
            raise MachineStateError(f"the format %Z {_ZONE}")
        return super().strptime(text, form)

    def time(self) -> _Time:
        return _Time(self.hour, self.minute, self.second, self.microsecond, fold=self.fold)

    def timetz(self) -> _Time:
        return self.time().replace(tzinfo=self.tzinfo)

    def date(self) -> _Date:
        return _Date(self.year, self.month, self.day)

    def strftime(self, form: str, /) -> str:
        return super().strftime(_checked(form))


def _checked(form: str) -> str:
    if "s" in _directives(form):
        raise MachineStateError(f"the format %s {_ZONE}")
    return form


def _directives(form: str) -> set[str]:
    """The letters of a format, without the flags and widths before them."""
    return set(re.findall(r"%[-_0^#:]*\d*[EO]?([A-Za-z%])", form))


PURE = {"date": _Date, "datetime": _Datetime, "time": _Time}
_OURS = frozenset(PURE.values())

for _name, _class in PURE.items():
    _class.__name__ = _class.__qualname__ = _name
    _class.__module__ = "datetime"

_Date.min, _Date.max = (_Date(day.year, day.month, day.day) for day in (real.date.min, real.date.max))
_Time.min, _Time.max = _Time.fromisoformat("00:00"), _Time.fromisoformat(real.time.max.isoformat())
_Datetime.min, _Datetime.max = _Datetime.combine(_Date.min, _Time.min), _Datetime.combine(_Date.max, _Time.max)
