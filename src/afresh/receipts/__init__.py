"""What to attach to a paper: everything a guard has released, and how to check it without the data."""

from afresh.receipts.make import make_receipt
from afresh.receipts.verification import Check, Verification, verify

__all__ = ["Check", "Verification", "make_receipt", "verify"]
