"""The accounts of a journal's chains: everything that is read is verified, and what was verified stays known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from afresh.errors import BrokenChain, LedgerError
from afresh.ledger.account import Account
from afresh.ledger.base import Terms
from afresh.ledger.journal import Chain, Journal, Sealed, Transaction
from afresh.ledger.records import START, Record, encode, seal


class Books:
    """One account for each chain, brought up to date by every transaction."""

    def __init__(self, journal: Journal) -> None:
        """The books of a journal, of which nothing has been read yet."""
        self._journal = journal
        self._accounts: dict[int, Account] = {}  # used within transactions only, so by one thread

    @contextmanager
    def reading(self, terms: Terms) -> Iterator[Account]:
        """The account, up to date."""
        with self._journal.transaction(write=False) as transaction:
            yield self.read(transaction, _find(transaction, terms))

    @contextmanager
    def writing(self, terms: Terms) -> Iterator[tuple[Account, Callable[[Sequence[Record]], None]]]:
        """The account, up to date, and a way to append to its chain.

        The account itself takes in new records when it next reads them back, once they are durable.
        """
        with self._journal.transaction(write=True) as transaction:
            chain = _find(transaction, terms)
            account = self.read(transaction, chain)

            def write(records: Sequence[Record]) -> None:
                if records:
                    transaction.append(chain, sealed(account.head, records))

            yield account, write

    def chain(self, terms: Terms) -> list[Sealed]:
        """The whole chain, verified."""
        with self._journal.transaction(write=False) as transaction:
            records, _ = self.verify(transaction, _find(transaction, terms))
            return list(records)

    def read(self, transaction: Transaction, chain: Chain) -> Account:
        """The account after every record of the chain; those read earlier are known, and not looked at again.

        What was verified stays in memory even if the storage no longer agrees with it, so that a ledger that has
        noticed a change goes on refusing.
        """
        account = self._accounts.setdefault(chain.id, Account())
        _fold(account, transaction.since(chain, account.length), chain)
        return account

    def verify(self, transaction: Transaction, chain: Chain) -> tuple[Sequence[Sealed], Account]:
        """All records of the chain, read from the first, and the account after them.

        Records that hash to the head of the account are, byte for byte, those it has taken in already: they are not
        folded a second time.
        """
        account = self._accounts.setdefault(chain.id, Account())
        records = transaction.since(chain, 0)
        known, head = account.length, START
        with _explained():
            for place, record in enumerate(records[:known], 1):
                if (head := seal(head, record.text)) != record.hash:
                    raise BrokenChain(f"record {place} does not follow from the one before it")
            if head != account.head:
                raise BrokenChain("its records are not those that were read before")
        _fold(account, records[known:], chain)
        return records, account


def sealed(head: str, records: Sequence[Record]) -> list[Sealed]:
    """The records as they follow a head."""
    found = []
    for record in records:
        text = encode(record)
        head = seal(head, text)
        found.append(Sealed(text, head))
    return found


def _find(transaction: Transaction, terms: Terms) -> Chain:
    """The chain of these terms. Its own caps count, not those of `terms`, which anyone can build."""
    chain = transaction.chain(terms.guard)
    if chain is None or chain.seed != terms.seed:
        raise LedgerError("these terms were not opened in this ledger; open the data again")
    return chain


def _fold(account: Account, records: Sequence[Sealed], chain: Chain) -> None:
    """Take the records into the account, or raise `BrokenChain`."""
    with _explained():
        if (found := account.length + len(records)) != chain.length:
            raise BrokenChain(f"there are {found} records, but {chain.length} were written")
        account.read(records)
        if account.head != chain.head:
            raise BrokenChain("its last record is not the one that was written last")


@contextmanager
def _explained() -> Iterator[None]:
    """Say what is wrong with a chain, and what to do."""
    try:
        yield
    except BrokenChain as error:
        raise BrokenChain(
            f"the ledger's chain of these data does not verify: {error}. It was changed by something else than "
            "afresh, so its budget and its answers cannot be trusted; restore the ledger from a copy."
        ) from None
