"""What every ledger must do, wherever its chains are stored: the tests a new backend has to pass.

A backend is a `Journal` (see `afresh.ledger.journal`). Its tests derive a class from `DurableConformance`, or from
`Conformance` if nothing but this process can reach what it stores, and say with a fixture how to connect:

    class TestMyBackend(DurableConformance):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(tmp_path)  # a new, empty `Storage`

pytest then collects every test from here. The tests need pytest and hypothesis, which afresh itself does not, so
nothing else imports this package.
"""

from afresh.ledger.conformance.chains import ChainTests, TamperTests
from afresh.ledger.conformance.dividing import DividingTests
from afresh.ledger.conformance.exam import ExamTests
from afresh.ledger.conformance.groups import GroupTests
from afresh.ledger.conformance.model import ModelTests
from afresh.ledger.conformance.paying import PayingTests
from afresh.ledger.conformance.recording import RecordingTests
from afresh.ledger.conformance.rounds import RoundTests
from afresh.ledger.conformance.storage import Connect, Storage
from afresh.ledger.conformance.terms import TermsTests

__all__ = ["Conformance", "Connect", "DurableConformance", "Storage"]


class Conformance(
    TermsTests, PayingTests, GroupTests, RecordingTests, DividingTests, RoundTests, ExamTests, ChainTests, ModelTests
):
    """The tests for any backend."""


class DurableConformance(Conformance, TamperTests):
    """The tests for a backend whose records outlive the process, where other tools can reach them."""
