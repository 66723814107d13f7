"""The accounts of a journal's chains: everything read is verified, and stays known once it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from afresh.errors import BrokenChain, LedgerError
from afresh.ledger.account import Account
from afresh.ledger.base import Terms
from afresh.ledger.collector import paused
from afresh.ledger.journal import Chain, Checkpoint, Journal, Sealed, Transaction
from afresh.ledger.records import START, Record, encode, seal

WORTHWHILE = 1000
"""From this many records on, a checkpoint saves more than it costs."""


class Books:
    """One account for each chain, brought up to date by every transaction."""

    def __init__(self, journal: Journal) -> None:
        """Make the books of a journal, with nothing read yet."""
        self._journal = journal
        self._accounts: dict[int, Account] = {}  # used within transactions only, so by one thread
        self._noted: dict[int, int] = {}

    def seen(self, terms: Terms, digests: Iterable[str]) -> bool:
        """Whether all were paid for, as far as was read: a hint without a transaction, as no payment is ever undone."""
        account = self._accounts.get(terms.guard)
        return account is not None and all(digest in account.finest for digest in digests)

    @contextmanager
    def reading(self, terms: Terms) -> Iterator[Account]:
        """Give the account, up to date."""
        with self._journal.transaction(write=False) as transaction:
            _, account = self._follow(transaction, terms)
            yield account

    @contextmanager
    def writing(self, terms: Terms) -> Iterator[tuple[Account, Callable[[Sequence[Record]], None]]]:
        """Give the account, up to date, and a way to append to its chain.

        The account itself takes in new records when it next reads them back, once they are durable.
        """
        with self._journal.transaction(write=True) as transaction:
            chain, account = self._follow(transaction, terms)

            def write(records: Sequence[Record]) -> None:
                if records:
                    transaction.append(chain, sealed(account.head, records))
                    self._note(transaction, chain, account)

            yield account, write

    def _follow(self, transaction: Transaction, terms: Terms) -> tuple[Chain, Account]:
        """Return the chain of these terms and its account, up to date."""
        account = self._accounts.get(terms.guard) or Account()
        found, records = transaction.follow(terms.guard, account.length)
        chain = _checked(found, terms)
        _fold(self._accounts.setdefault(chain.id, account), records, transaction, chain)
        return chain, account

    def _note(self, transaction: Transaction, chain: Chain, account: Account) -> None:
        """Occasionally note how far the chain was verified, in a transaction that writes anyway."""
        if account.length - self._noted.get(chain.id, 0) >= WORTHWHILE:
            transaction.note(chain, Checkpoint.of(chain, account.length, account.head))
            self._noted[chain.id] = account.length

    def chain(self, terms: Terms) -> list[Sealed]:
        """Return the whole chain, verified."""
        with self._journal.transaction(write=False) as transaction:
            chain = _checked(transaction.chain(terms.guard), terms)
            records, account = self.verify(transaction, chain)
            if account.trusted:  # a published chain is verified in full, whatever was noted
                with _explained():
                    account = Account()
                    account.read(records)
                self._accounts[chain.id] = account
            return list(map(Sealed._make, records))

    def read(self, transaction: Transaction, chain: Chain) -> Account:
        """Return the account after every record of the chain; records read earlier are known and not read again.

        What was verified stays in memory even if the storage no longer agrees with it, so a ledger that has noticed a
        change keeps refusing.
        """
        account = self._accounts.setdefault(chain.id, Account())
        _fold(account, transaction.since(chain, account.length), transaction, chain)
        return account

    @paused()
    def verify(self, transaction: Transaction, chain: Chain) -> tuple[Sequence[tuple[str, str]], Account]:
        """Return all records of the chain, read from the first, and the account after them.

        Records that hash to the head of the account are, byte for byte, those it has already taken in: they are not
        folded a second time.
        """
        account = self._accounts.setdefault(chain.id, Account())
        records = transaction.since(chain, 0)
        known, head = account.length, START
        with _explained():
            for place, (text, hash) in enumerate(records[:known], 1):
                if (head := seal(head, text)) != hash:
                    raise BrokenChain(f"record {place} does not follow from the one before it")
            if head != account.head:
                raise BrokenChain("its records are not those that were read before")
        _fold(account, records[known:], transaction, chain)
        return records, account


def sealed(head: str, records: Sequence[Record]) -> list[Sealed]:
    """Seal the records as they follow a head."""
    found = []
    for record in records:
        text = encode(record)
        head = seal(head, text)
        found.append(Sealed(text, head))
    return found


def _checked(chain: Chain | None, terms: Terms) -> Chain:
    """Return the chain of these terms. Its own caps apply, not those of `terms`, which anyone can build."""
    if chain is None or chain.seed != terms.seed:
        raise LedgerError("these terms were not opened in this ledger; open the data again")
    return chain


def _fold(account: Account, records: Sequence[tuple[str, str]], transaction: Transaction, chain: Chain) -> None:
    """Take the records into the account, or raise `BrokenChain`."""
    with _explained():
        if (found := account.length + len(records)) != chain.length:
            raise BrokenChain(f"there are {found} records, but {chain.length} were written")
        account.read(records, _trusted(account, records, transaction, chain))
        if account.head != chain.head:
            raise BrokenChain("its last record is not the one that was written last")


def _trusted(account: Account, records: Sequence[tuple[str, str]], transaction: Transaction, chain: Chain) -> int:
    """Return how many records of the chain a checkpoint covers; 0 if there is none, or if anything is odd about it."""
    noted = transaction.checkpoint(chain) if len(records) >= WORTHWHILE else None
    if noted is None or not isinstance(noted.length, int) or noted != Checkpoint.of(chain, noted.length, noted.head):
        return 0
    place = noted.length - account.length
    return noted.length if 1 <= place <= len(records) and records[place - 1][1] == noted.head else 0


@contextmanager
def _explained() -> Iterator[None]:
    """Turn a broken chain into an error that says what is wrong and what to do."""
    try:
        yield
    except BrokenChain as error:
        raise BrokenChain(
            f"the ledger's chain for this dataset does not verify: {error}. Something other than afresh changed it, so "
            "its budget and its answers cannot be trusted; restore the ledger from a copy."
        ) from None
