"""Mistakes of a configuration are told with their lines, all at once, before anything is opened."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from afresh.errors import InvalidArgument
from afresh.server.config import read_config
from cli.program import afresh
from judging.made import make
from server.running import CONFIG, write_data

WRONG = """
state = "state"
tick = -1
colour = "red"

[limits]
body = "large"

[datasets.customers]
data = "customers.parquet"
questions = 0
method = "magic"
[datasets.customers.columns.amount]
bounds = [5, 1]
unit = 3

[datasets."bad name"]
data = "x.parquet"

[datasets.empty]

[holdouts.churn]
data = "churn.parquet"
loss = "huge"
[holdouts.customers]
data = "churn.parquet"
label = "y"
shares = { ann = -1 }
"""


@pytest.mark.parametrize("what", ["label", "id"])
def test_what_analysts_must_know_cannot_be_hidden(what: str, tmp_path: Path) -> None:
    place = tmp_path / "afresh.toml"
    head = '[holdouts.churn]\ndata = "churn.parquet"\nlabel = "churned"\nid = "row"\n'
    name = {"label": "CHURNED", "id": "Row"}[what]  # names of columns are the same in capitals
    place.write_text(f"{head}columns.{name}.hidden = true\n")
    with pytest.raises(InvalidArgument, match=f"the {what} cannot be hidden"):
        read_config(place)


def test_dates_of_a_form(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("day,n\n" + "".join(f"12/{1 + i % 28:02d}/2019,{i}\n" for i in range(600)))
    place = tmp_path / "afresh.toml"
    place.write_text('state = "state"\n[datasets.orders]\ndata = "orders.csv"\ndates = "%m/%d/%Y"\nrounds = 3\n')
    assert afresh("serve", place, "--check").returncode == 0
    place.write_text(place.read_text().replace("%m/%d", "%d/%m"))
    assert "no column" in afresh("serve", place, "--check").stderr


def test_every_mistake_has_its_line(tmp_path: Path) -> None:
    place = tmp_path / "afresh.toml"
    place.write_text(WRONG)
    with pytest.raises(InvalidArgument) as caught:
        read_config(place)
    told = {tuple(re.split(": | == ", line, maxsplit=2)[:2]) for line in str(caught.value).splitlines()}
    lines = {
        (3, "tick"),
        (4, "colour"),
        (7, "limits.body"),
        (11, "datasets.customers.questions"),
        (12, "datasets.customers.method"),
        (14, "datasets.customers.columns.amount.bounds"),
        (15, "datasets.customers.columns.amount.unit"),
        (17, "datasets.bad name"),
        (20, "datasets.empty"),
        (22, "holdouts.churn"),
        (24, "holdouts.churn.loss"),
        (25, "holdouts.customers"),
        (28, "holdouts.customers.shares"),
    }
    assert {(f"{place}:{line}", path) for line, path in lines} <= told
    assert not (tmp_path / "state").exists()
    # The path names the key, so the message does not name it again.
    assert f"{place}:11: datasets.customers.questions == 0, must be at least 1." in str(caught.value)
    assert "holdouts.customers.shares: the share of ann == -1" in str(caught.value)


def test_a_mistyped_key_is_recognized(tmp_path: Path) -> None:
    place = tmp_path / "afresh.toml"
    place.write_text('[datasets.a]\ndata = "a.parquet"\nquestion = 9\n')
    with pytest.raises(InvalidArgument, match="did you mean 'questions'"):
        read_config(place)


def test_mistakes_have_a_line_each_and_no_line_of_the_files_own(tmp_path: Path) -> None:
    place = tmp_path / "afresh.toml"
    place.write_text('colour = "red"\n"two\\nlines" = 1\n[datasets.a]\ndata = "a.parquet"\n')
    with pytest.raises(InvalidArgument) as caught:
        read_config(place)
    said = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in said] == ["colour", r"two\nlines"]
    shown = afresh("serve", place, "--check").stderr
    assert shown.splitlines()[:2] == [f"afresh: {said[0]}", said[1]]


@pytest.mark.parametrize(("text", "line"), [("tick = ", 1), ("[datasets", 1), ("\n\x00", 2), ("a = 1\na = 2", 2)])
def test_what_is_no_toml_is_told(tmp_path: Path, text: str, line: int) -> None:
    place = tmp_path / "afresh.toml"
    place.write_text(text)
    with pytest.raises(InvalidArgument, match=rf"afresh\.toml:{line}: "):
        read_config(place)


def test_nothing_is_served_by_nothing(tmp_path: Path) -> None:
    place = tmp_path / "afresh.toml"
    place.write_text("")
    with pytest.raises(InvalidArgument, match="nothing to serve"):
        read_config(place)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        read_config(tmp_path / "nowhere.toml")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return afresh(*arguments, folder=folder)


def test_a_check_lists_all_that_is_served(tmp_path: Path) -> None:
    write_data(tmp_path)
    top, _, evaluator = make(tmp_path).read_text().partition("[evaluator]")
    more = (
        f"[evaluations.qa]{top}[evaluations.qa.evaluator]{evaluator}[boards.spring]\nholdout = 'churn'\npublic = true\n"
    )
    place = tmp_path / "afresh.toml"
    place.write_text(CONFIG.format(more=more, ledger=""))
    config = read_config(place)
    tables = [getattr(config, each.name) for each in fields(config)]
    names = {name for table in tables if isinstance(table, Mapping) for name in table}
    assert names == {"customers", "churn", "qa", "spring"}
    told = run(tmp_path, "serve", "afresh.toml", "--check").stdout.splitlines()
    assert {line.strip().partition(":")[0] for line in told[1:-1]} == names
    assert told[-1] == "  to nobody yet: afresh token new NAME"
    for name in ("ann", "bob"):
        run(tmp_path, "token", "new", name)
    run(tmp_path, "token", "revoke", "bob")
    assert run(tmp_path, "serve", "afresh.toml", "--check").stdout.splitlines()[-1] == "  to 1 token"


def test_a_check_opens_what_tokens_are_checked_with(tmp_path: Path) -> None:
    write_data(tmp_path)
    jwt = "[jwt]\nkeys = 'keys.json'\nissuer = 'https://id.example'\naudience = 'afresh'\n"
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more=jwt, ledger=""))
    bad = run(tmp_path, "serve", "afresh.toml", "--check")
    assert (bad.returncode, bad.stdout, "jwt.keys" in bad.stderr) == (2, "", True)
    key = OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate().public_key())
    (tmp_path / "keys.json").write_text(f'{{"keys": [{key}]}}')
    good = run(tmp_path, "serve", "afresh.toml", "--check")
    assert "to those who have a token of https://id.example" in good.stdout


def test_a_check_opens_the_data_and_ends(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more="", ledger=""))
    good = run(tmp_path, "serve", "afresh.toml", "--check")
    assert good.returncode == 0, good.stderr
    assert "customers: 4,000 rows" in good.stdout
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more='[datasets.gone]\ndata = "gone.parquet"', ledger=""))
    bad = run(tmp_path, "serve", "afresh.toml", "--check")
    assert bad.returncode == 1
    assert "gone" in bad.stderr
    line = 1 + CONFIG[: CONFIG.index("{more}")].count("\n")
    assert f"afresh.toml:{line}: while opening gone" in bad.stderr
    started = run(tmp_path, "serve", "afresh.toml", "--port", "1")
    assert started.returncode == 1
    assert "Traceback" not in started.stderr
    assert "while opening gone" in started.stderr


def test_tokens_from_a_shell(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more="", ledger=""))
    made = run(tmp_path, "token", "new", "ann", "--dataset", "customers", "--days", "1", "--cap", "5").stdout.strip()
    assert len(made) > 43
    listed = run(tmp_path, "token", "list").stdout
    assert "ann" in listed
    assert made not in listed
    assert made.encode() not in (tmp_path / "state" / "service.sqlite").read_bytes()
    assert (tmp_path / "state" / "service.sqlite").stat().st_mode & 0o777 == 0o600
    assert run(tmp_path, "token", "revoke", "ann").returncode == 0
    assert run(tmp_path, "token", "revoke", "ann").returncode == 1
    assert run(tmp_path, "token", "new", "bob", "--role", "king").returncode == 2
    mistyped = run(tmp_path, "token", "new", "bob", "--dataset", "custmers")
    assert mistyped.returncode == 2
    assert "did you mean 'customers'" in mistyped.stderr


@pytest.mark.parametrize("words", [("token", "list"), ("token", "new", "ann"), ("backup", "copies")])
def test_without_a_configuration_it_says_which_services_have_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 2
    assert "there is no afresh.toml here; give the service's configuration with --config FILE" in done.stderr
    assert "A service started with a data file has none" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["afresh.toml", "customers.parquet"])
def test_a_port_in_use_is_refused_before_a_token_is_made(tmp_path: Path, what: str) -> None:
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more="", ledger=""))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "serve", what, "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    assert "--port" in done.stderr


def test_mistakes_are_told_one_a_line_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text('tick = "x"\n"odd\\nkey" = 1\n[datasets.a]\ndata = 3\n')
    told = run(tmp_path, "serve", "afresh.toml", "--check")
    assert told.returncode == 2
    named = {re.split(": | == ", line.removeprefix("afresh: "))[1] for line in told.stderr.splitlines()}
    assert named == {"tick", r"odd\nkey", "datasets.a.data"}
