"""The date of FMS and DS datagrams: ten octets whose month counts from 0 or from 1, depending on who sent it."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import U8, U32

__all__ = ["FIRST_YEAR", "Date"]

FIRST_YEAR = 1900  # the year octet counts from here


class Date(Packet, frozen=True):
    """A date exactly as on the wire: year - 1900, month as sent. DS to RIO is proven UTC with January = 0.

    Source: captures of 2021 and 2024; FMS to DS: Cheesy Arena (local time, January = 1).
    """

    microseconds: Annotated[int, U32]
    second: Annotated[int, U8]
    minute: Annotated[int, U8]
    hour: Annotated[int, U8]
    day: Annotated[int, U8]
    month: Annotated[int, U8]
    year: Annotated[int, U8]
    derived: ClassVar[tuple[str, ...]] = ("iso_month0", "iso_month1")

    @classmethod
    def from_datetime(cls, moment: datetime, month_base: int = 0) -> "Date":
        """The octets for a moment, as it reads on its own clock; years 1900..2155."""
        month = moment.month - 1 + month_base
        return cls(
            moment.microsecond, moment.second, moment.minute, moment.hour, moment.day, month, moment.year - FIRST_YEAR
        )

    def to_datetime(self, month_base: int = 0) -> datetime | None:
        """The moment in UTC, January = ``month_base``; None when that is not a date."""
        try:
            month = self.month + 1 - month_base
            year = FIRST_YEAR + self.year
            moment = datetime(year, month, self.day, self.hour, self.minute, self.second, self.microseconds, UTC)
        except (ValueError, OverflowError):  # OverflowError: microseconds beyond a C int
            return None
        return moment

    @property
    def iso_month0(self) -> str | None:
        """``YYYY-MM-DDTHH:MM:SS.ffffff`` with January = 0, None when that is not a date."""
        return _iso(self.to_datetime(0))

    @property
    def iso_month1(self) -> str | None:
        """The same with January = 1."""
        return _iso(self.to_datetime(1))


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.replace(tzinfo=None).isoformat(timespec="microseconds")
