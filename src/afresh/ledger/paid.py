"""What was paid for, and what was answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from afresh.errors import BrokenChain, InvalidArgument
from afresh.ledger.base import Entry, check_ends, check_released
from afresh.ledger.records import Answered, Released, Reserved, decode
from afresh.ledger.translate import entry_of


class Questions(Sequence[Reserved]):
    """The questions of an account, in order, each kept as a plain tuple and made a record on access.

    Python's garbage collector forgets a plain tuple of texts and numbers once it has seen it. It would scan the
    records of a long chain again and again, while everybody waits.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._kept: list[tuple[Any, ...]] = []

    def append(self, record: Reserved) -> None:
        """Keep one more."""
        self._kept.append(tuple(record))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kept)

    @overload
    def __getitem__(self, place: int) -> Reserved: ...

    @overload
    def __getitem__(self, place: slice) -> list[Reserved]: ...

    def __getitem__(self, place: int | slice) -> Reserved | list[Reserved]:
        """Return the one at a place, or several."""
        if isinstance(place, slice):
            return list(map(Reserved._make, self._kept[place]))
        return Reserved._make(self._kept[place])

    def __iter__(self) -> Iterator[Reserved]:
        """Iterate in order."""
        return map(Reserved._make, self._kept)


class Paid(Sequence[Entry]):
    """The entries of an account, in order; each is made on access, because a long chain has very many."""

    def __init__(self) -> None:
        """Start with nothing paid for."""
        self.reserved = Questions()
        self.answered: list[tuple[Any, ...] | str | None] = []
        """By place: plain tuples, as in `Questions`; a text is an answer nobody has looked at (see `Account.read`)."""
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
            found = self.answered[place] = tuple(self._checked(found, range(len(self))[place] + 1))
        return None if found is None else Answered._make(found)

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
