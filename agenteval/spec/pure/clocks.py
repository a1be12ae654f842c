"""Dates and times without the machine's clock and time zone; what `datetime` means in a suite's functions."""

from __future__ import annotations

import datetime as real
from typing import Any, NoReturn, Self

_CLOCK = "reads the machine's clock; use the clock that the function is given"
_ZONE = "reads the machine's time zone; name the zone that is meant"


class MachineStateError(RuntimeError):
    """A function asks for the machine's clock or time zone."""


class _DateType(type):
    """Instances are those of the library's own class too, which its methods give."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


class _Date(real.date, metaclass=_DateType):
    @classmethod
    def today(cls) -> NoReturn:
        raise MachineStateError(f"today {_CLOCK}")

    @classmethod
    def fromtimestamp(cls, _seconds: float, /) -> NoReturn:
        raise MachineStateError(f"fromtimestamp of a date {_ZONE}")

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

    def date(self) -> _Date:
        return _Date(self.year, self.month, self.day)

    def strftime(self, form: str, /) -> str:
        return super().strftime(_checked(form))


def _checked(form: str) -> str:
    if "s" in (part[:1] for part in form.replace("%%", "").split("%")[1:]):
        raise MachineStateError(f"the format %s {_ZONE}")
    return form


for _class, _name in ((_Date, "date"), (_Datetime, "datetime")):
    _class.__name__ = _class.__qualname__ = _name
    _class.__module__ = "datetime"

PURE = {"date": _Date, "datetime": _Datetime}
