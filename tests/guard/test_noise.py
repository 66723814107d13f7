"""Tests seed their guards (tests/chance.py); a real guard draws from the operating system alone."""

import subprocess
import sys

CODE = """
import secrets
from afresh.guard import noise
from afresh.ledger import ledger

assert noise.secrets is ledger.secrets is secrets
drawn = []
noise.secrets = type("Counting", (), {"randbits": lambda bits: drawn.append(bits) or secrets.randbits(bits)})
assert len({noise.from_entropy(number=1) for _ in range(9)}) == 9
assert drawn == [64] * 9
"""


def test_noise_and_deals_come_from_the_operating_system() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
