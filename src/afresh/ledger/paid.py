"""What was paid for, and what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from afresh.errors import BrokenChain, InvalidArgument
from afresh.ledger.base import Entry, check_ends, check_released
from afresh.ledger.records import Answered, Released, Reserved, decode
from afresh.ledger.translate import entry_of


class Paid(Sequence[Entry]):
    """The entries of an account, in order; each is made on access, because a long chain has very many."""

    def __init__(self) -> None:
        """Start with nothing paid for."""
        self.reserved: list[Reserved] = []
        self.answered: list[Answered | str | None] = []
        """By place; a text is an answer that nobody has looked at yet (see `Account.read`)."""
        self.order: list[int] = []
        """The places of the answers, in the order of their records."""
        self.ends = 1.0

    def __len__(self) -> int:
        """Return how many were paid for."""
        return len(self.reserved)

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...

    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        """Return the entry with the number `place + 1`."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        return entry_of(self.reserved[place], self.answer(place))

    def answer(self, place: int) -> Answered | None:
        """Return what was released for a question; it is checked here at the latest, before anyone sees it."""
        found = self.answered[place]
        if isinstance(found, str):
            found = self.answered[place] = self._checked(found, range(len(self))[place] + 1)
        return found

    def _checked(self, text: str, number: int) -> Answered:
        try:
            record = decode(text)
            if not isinstance(record, Answered) or record.number != number:
                raise BrokenChain
            check_released(record)
            check_ends(record, self.ends)
        except (BrokenChain, InvalidArgument, TypeError, ValueError, AttributeError, ArithmeticError):
            raise BrokenChain(
                f"the answer to question {number} is not one that afresh wrote, so it is not shown. The ledger was "
                "changed by something other than afresh; restore the ledger from a copy."
            ) from None
        return record


class Earlier(Sequence[Released]):
    """What was released so far, in the order of the records; each release is looked up on access.

    There may be very many, and mechanisms with a memory need few of them: a record states what came before it.
    """

    def __init__(self, paid: Paid) -> None:
        """Take everything released so far; later releases are not included unless appended."""
        self._paid, self._known = paid, len(paid.order)
        self._more: list[Released] = []

    def append(self, released: Released) -> None:
        """Add what is about to be released."""
        self._more.append(released)

    def __len__(self) -> int:
        """Return how many there are."""
        return self._known + len(self._more)

    @overload
    def __getitem__(self, place: int) -> Released: ...

    @overload
    def __getitem__(self, place: slice) -> list[Released]: ...

    def __getitem__(self, place: int | slice) -> Released | list[Released]:
        """Return the one at a place, or several."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        where = range(len(self))[place]
        if where >= self._known:
            return self._more[where - self._known]
        answer = self._paid.answer(self._paid.order[where])
        assert answer is not None
        return answer.released
