"""What may be an analyst's name, wherever one comes from: budgets are shared by these, and people read them."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

import afresh
from afresh.errors import AfreshError
from afresh.server.config import Jwt, read_config
from afresh.server.jwt import Provider
from afresh.server.store import Store
from afresh.server.tokens import Tokens
from cli.program import afresh as run

GOOD = ("ann", "Ann O'Neill", "张伟", "auth0|5f7c8ec7c33c6c004bbafe82", "ann@example.com", "x" * 200)
BAD: tuple[Any, ...] = (
    *("", " ", "\t", " ann", "ann ", "ann\n", "a\x00b", "a\x1b[31mb", "a\u202eb", "a\u200bb", "a\u2028b", "x" * 201),
    *("\ud800", "\u3164", "a\xadb"),
)
KEY = Ed25519PrivateKey.generate()
FRAME = pd.DataFrame({"x": np.random.default_rng(5).random(1000)})


def ways(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[str], object]]:
    """Every way by which a name comes in."""
    guard = afresh.open(FRAME, 100, method="stabilized", ledger=folder / "ledger.sqlite", allow_wide=True)
    (folder / "keys.json").write_text(f'{{"keys": [{OKPAlgorithm.to_jwk(KEY.public_key())}]}}')
    provider = Provider(Jwt(str(folder / "keys.json"), "https://id.example", "afresh"))

    def signed(name: str) -> object:
        claims = {"sub": name, "iss": "https://id.example", "aud": "afresh", "exp": time.time() + 600}
        return provider.find(jwt.encode({**claims, "afresh_role": "analyst"}, KEY, "EdDSA")).name == name

    def configured(name: str) -> object:
        place = folder / "afresh.toml"
        shares = f"shares.{json.dumps(name)} = 5" if name.isprintable() else f"shares.{_toml(name)} = 5"
        place.write_text(f'[datasets.a]\ndata = "a.parquet"\n{shares}\n')
        return read_config(place)

    def by_environment(name: str) -> None:
        with monkeypatch.context() as then:
            then.setenv("AFRESH_ANALYST", name)
            afresh.open(FRAME, ledger=folder / "ledger.sqlite", allow_wide=True).close()

    return {
        "open": lambda name: afresh.open(FRAME, ledger=folder / "ledger.sqlite", analyst=name, allow_wide=True).close(),
        "environment": by_environment,
        "for_analyst": lambda name: guard.for_analyst(name),
        "divide": lambda name: guard.divide({name: 1}),
        "token": lambda name: Tokens(Store(str(folder / "service.sqlite"))).new(name),
        "sub": signed,
        "configuration": configured,
    }


def _toml(name: str) -> str:
    return '"' + "".join(f"\\U{ord(c):08x}" for c in name) + '"'


def test_names_are_checked_alike_wherever_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for way, enter in ways(tmp_path, monkeypatch).items():
        for name in GOOD:
            enter(name)
        for name in BAD:
            if way == "environment" and ("\x00" in name or "\ud800" in name):
                continue  # no environment holds it
            with pytest.raises((AfreshError, UnicodeEncodeError)) as caught:
                enter(name)
            if isinstance(caught.value, AfreshError) and name != "\ud800":
                assert str(caught.value).isprintable(), (way, name)


def test_a_name_that_is_refused_costs_nothing_at_a_terminal(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "rows.parquet")
    ran = run("ask", "rows.parquet", "x < 0.5", "--analyst", "a\x1b[31mb", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "visible characters" in ran.stderr
