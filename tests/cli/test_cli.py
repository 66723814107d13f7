import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.program import afresh


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    path = tmp_path / "holdout.parquet"
    frame = pd.DataFrame({"churned": rng.random(3000) < 0.3, "tenure": rng.integers(0, 9, 3000)})
    frame.assign(amount=rng.gamma(2.0, 60.0, 3000)).to_parquet(path)
    return path


def test_plan() -> None:
    rare = ["--typical", 0.01, "--typical", 0.02, "--promise"]
    done = afresh("plan", "--rows", 100000, "--questions", 1000, "--confidence", 0.99, *rare, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["method"] == "stabilized"
    assert set(told["half_width"]) == {"0.5", "0.1", "0.01"}
    assert told["half_width"]["0.01"] < 0.0126
    usual = json.loads(
        afresh("plan", "--rows", 100000, "--questions", 1000, "--confidence", 0.99, "--promise", "--json").stdout
    )
    assert usual["method"] == "settled"
    assert usual["half_width"]["0.5"] == pytest.approx(0.0416, abs=1e-3)
    assert 10 < told["information"] < 30
    assert {"stabilized", "calibrated", "rounds", "jung", "paper"} <= set(told["methods"])
    forced = json.loads(afresh("plan", "--rows", 100000, "--questions", 1000, "--method", "rounds", "--json").stdout)
    assert forced["method"] == "rounds"
    guessing = ["--method", "checked"]
    assert "if checks pass" in afresh("plan", "--rows", 5000, "--questions", 20, *guessing).stdout
    assert afresh("plan", "--rows", 5000, "--questions", 20, "--method", "fixed-gaussian").returncode == 2
    assert "calibrated" in afresh("plan", "--rows", 1000, "--width", 0.2, "--all").stdout
    assert "calibrated" not in afresh("plan", "--rows", 1000, "--width", 0.2).stdout
    more = json.loads(afresh("plan", "--rows", 5000, "--questions", 20, "--answers", 60, "--json").stdout)
    assert (more["questions"], more["answers"]) == (20, 60)
    assert (
        "answers == 19, must be at least 20"
        in afresh("plan", "--rows", 5000, "--questions", 20, "--answers", 19).stderr
    )


def test_dates_of_a_form(tmp_path: Path) -> None:
    days = pd.date_range("2019-01-01", periods=600)
    path = tmp_path / "orders.csv"
    pd.DataFrame({"day": days.strftime("%m/%d/%Y"), "n": range(600)}).to_csv(path, index=False)
    question = ("ask", path, "day < '2020-01-01'", "--ledger", tmp_path / "ledger.sqlite", "--rounds", 1)
    refused = afresh(*question)
    assert refused.returncode == 3
    assert "--dates" in refused.stderr
    answered = afresh(*question, "--dates", "%m/%d/%Y", "--json")
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout)["value"] == pytest.approx(365 / 600)
    assert "must be the form of a day" in afresh(*question, "--dates", "%m").stderr


def test_a_budget_that_never_ends(data: Path) -> None:
    assert "Any number of questions" in afresh("plan", "--rows", 20000, "--no-end").stdout
    refused = afresh("plan", "--rows", 20000, "--no-end", "--questions", 3)
    assert (refused.returncode, "--no-end replaces --questions 3" in refused.stderr) == (2, True)
    assert "the budget never runs out" in afresh("ask", data, "churned", "--no-end", "--allow-wide").stdout


def test_a_guess_of_ones_own_never_fixes_a_plan_that_cannot_check_it(data: Path) -> None:
    guess = ("ask", data, "churned", "--guess", 0.3, 0.1)
    assert "never opened" in afresh(*guess).stderr
    assert afresh(*guess, "--method", "rounds").returncode == 2
    told = json.loads(afresh(*guess, "--method", "checked", "--json").stdout)
    assert (told["value"], told["method"], told["left"]) == (0.3, "checked", 99)


def test_ask_budget_log(data: Path) -> None:
    first = afresh("ask", data, "churned AND tenure < 3", "--questions", 50, "--json")
    assert first.returncode == 0
    told = json.loads(first.stdout)
    assert told["low"] <= told["value"] <= told["high"]
    assert (told["confidence"], told["charged"], told["left"]) == (0.95, 1, 49)
    again = json.loads(afresh("ask", data, "tenure < 3 and churned", "--json").stdout)
    assert (again["value"], again["charged"], again["left"]) == (told["value"], 0, 49)
    group = json.loads(
        afresh("ask", data, "amount", "--bounds", -10, 500, "--where", "churned", "--missing", 3, "--json").stdout
    )
    assert (group["charged"], group["left"], group["bounds"]) == (2, 47, [-10, 500])
    budget = json.loads(afresh("budget", data, "--json").stdout)
    assert (budget["spent"], budget["left"], budget["questions"]) == (3, 47, 50)
    log = json.loads(afresh("log", data, "--json").stdout)
    assert [[part["number"] for part in entry["parts"]] for entry in log["questions"]] == [[], [2, 3]]
    assert log["questions"][0]["value"] == told["value"]
    assert "47 of 50 answers left" in afresh("budget", data).stdout
    assert "churned AND tenure < 3" in afresh("log", data).stdout
    assert "95%" in afresh("ask", data, "churned AND tenure < 3").stdout


def test_exit_codes_and_messages(data: Path, tmp_path: Path) -> None:
    def failing(code: int, message: str, *arguments: object) -> None:
        done = afresh(*arguments)
        assert done.returncode == code, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""

    failing(1, "never opened", "budget", data)
    failing(1, "there is no ledger", "log", data, "--ledger", tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    failing(3, "no column", "ask", data, "churnd", "--questions", 77)  # a mistake fixes no plan
    assert afresh("ask", data, "churned", "--questions", 1).returncode == 0
    failing(2, "rows == 5, must be at least 20", "plan", "--rows", 5, "--questions", 1)
    failing(2, "Invalid value for '--rows': 'many' is not a whole number.", "plan", "--rows", "many", "--questions", 1)
    failing(2, "'--confidence': 'high' is not a number.", "plan", "--rows", 50, "--confidence", "high")
    failing(2, "'--bounds': 'much' is not a number.", "ask", data, "amount", "--bounds", 5, "much")
    failing(2, "bounds", "ask", data, "amount", "--bounds", 5, 1)
    failing(3, "did you mean churned?", "ask", data, "churnd")
    failing(3, "aggregate", "ask", data, "avg(amount) > 3", "--json")
    failing(4, "1 of 1 are spent", "ask", data, "tenure < 3")
    failing(5, "The plan of this dataset is questions=1", "ask", data, "churned", "--questions", 2)
    failing(1, "does not exist", "ask", tmp_path / "nothing.parquet", "x")


def test_what_the_system_refuses_is_said_without_its_number(data: Path, tmp_path: Path) -> None:
    assert afresh("ask", data, "churned", "--questions", 20).returncode == 0
    for arguments in (("verify", tmp_path), ("receipt", data, "--out", tmp_path / "nowhere" / "receipt.json")):
        for more in ((), ("--json",)):
            done = afresh(*arguments, *more)
            assert (done.returncode, done.stdout, "Errno" in done.stderr) == (1, "", False)
            assert str(arguments[-1]) in done.stderr


def test_pvalue(data: Path) -> None:
    told = json.loads(afresh("pvalue", 1e-12, "--information", 0.5, "--json").stdout)
    assert told["corrected"] == pytest.approx(0.021909, abs=1e-6)
    afresh("ask", data, "churned", "--questions", 20)
    of_data = json.loads(afresh("pvalue", 1e-300, "--data", data, "--json").stdout)
    assert of_data["information"] == json.loads(afresh("budget", data, "--json").stdout)["information"]
    assert "p = " in afresh("pvalue", 1e-9, "--information", 0.1).stdout
    assert afresh("pvalue", 1e-9).returncode == 2
    assert afresh("pvalue", 1.5, "--information", 1).returncode == 2
    other = data.parent / "other.parquet"
    pd.DataFrame({"x": range(100)}).to_parquet(other)
    afresh("ask", other, "x < 5", "--questions", 2, "--method", "rounds")
    refused = afresh("pvalue", 1e-9, "--data", other)
    assert refused.returncode == 2
    assert "rounds" in refused.stderr


def test_receipt_and_verify(data: Path, tmp_path: Path) -> None:
    afresh("ask", data, "churned", "--questions", 20, "--answers", 60, "--analyst", "ann")
    out = tmp_path / "receipt.json"
    made = json.loads(afresh("receipt", data, "--out", out, "--markdown", "--json").stdout)
    assert made["files"] == [str(out.with_suffix(ending)) for ending in (".json", ".html", ".md")]
    told = json.loads(afresh("verify", out, "--json").stdout)
    assert told["passed"]
    assert told["head"] == made["head"]
    assert "The receipt verifies: 1 answer" in afresh("verify", out).stdout
    out.write_text(out.read_text().replace('"ann"', '"bob"'))
    lie = afresh("verify", out)
    assert lie.returncode == 1
    assert "does NOT verify" in lie.stdout
    out.write_text("nonsense")
    assert "not JSON" in afresh("verify", out).stderr
    gone = afresh("verify", tmp_path / "nothing")
    assert (gone.returncode, "there is no file" in gone.stderr, "afresh receipt DATA" in gone.stderr) == (1, True, True)
    assert "is the JSON file" in afresh("receipt", data, "--out", tmp_path / "page.html").stderr


def test_divide_and_charge(data: Path) -> None:
    afresh("ask", data, "churned", "--questions", 20, "--analyst", "ann", "--method", "calibrated")
    told = json.loads(afresh("divide", data, "ann=5", "bob=3", "--analyst", "ann", "--json").stdout)
    assert (told["left"], told["shares"]) == (4, {"ann": 5, "bob": 3})
    assert "3 of 3 answers left in the share of bob" in afresh("budget", data, "--analyst", "bob").stdout
    assert "12 of 12 answers left for analysts without a share" in afresh("budget", data, "--analyst", "eve").stdout
    assert "NAME=K" in afresh("divide", data, "ann").stderr
    assert "add up to 30" in afresh("divide", data, "ann=30").stderr
    charged = json.loads(afresh("charge", data, "a private count", "--pure-dp", 0.001, "--json").stdout)
    assert 0 < charged["outside_information"] < charged["information"]
    assert afresh("charge", data, "all of it", "--pure-dp", 10).returncode == 4
    assert "exactly one of" in afresh("charge", data, "an exact mean").stderr


def test_precision(data: Path) -> None:
    full = json.loads(afresh("ask", data, "churned", "--questions", 20, "--answers", 60, "--json").stdout)
    coarse = json.loads(afresh("ask", data, "tenure < 3", "--precision", 0.3, "--json").stdout)
    assert coarse["charged_information"] < full["charged_information"] / 2
    assert (coarse["high"] - coarse["low"]) / 2 <= 0.3
    assert json.loads(afresh("ask", data, "churned", "--precision", 0.3, "--json").stdout)["charged"] == 0
    refused = afresh("ask", data, "tenure < 4", "--precision", 0.01)
    assert refused.returncode == 2
    assert "precision == 0.01" in refused.stderr
    assert "precision=" in afresh("budget", data).stdout


def test_as_a_process(data: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "afresh.cli", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("--version").stdout == "afresh 0.1.0\n"
    answered, refused = run("ask", data, "churned", "--json"), run("ask", data, "churnd")
    assert (answered.returncode, answered.stderr) == (0, "")
    assert 0 < json.loads(answered.stdout)["value"] < 1
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("afresh: ")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", ["plan", "ask", "budget", "log", "pvalue", "demo", "charge", "divide", "receipt", "verify", "list"]
)
def test_help(command: str) -> None:
    text = afresh(command, "--help").stdout
    assert "--json" in text
    assert "Exit codes" in text
    assert command in afresh("--help").stdout


def test_short_help_and_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["plan"], ["lab", "coverage"], ["token", "new"]):
        assert afresh(*command, "-h").stdout == afresh(*command, "--help").stdout != ""
    assert "--install-completion" in afresh("-h").stdout
    for words, found in {
        "afresh bud": "budget",
        "afresh plan --que": "--questions",
        "afresh plan --method sta": "stab",
    }.items():
        monkeypatch.setenv("_AFRESH_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        assert found in afresh().stdout, words


def test_errors_are_json_where_results_are(data: Path, tmp_path: Path) -> None:
    def failing(code: int, name: str, message: str, *arguments: object) -> dict[str, object]:
        done = afresh(*arguments, "--json")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
        told: dict[str, object] = json.loads(done.stderr)
        assert (told["code"], told["exit_code"]) == (name, code)
        assert message in str(told["detail"])
        return told

    failing(1, "data-error", "never opened", "budget", data)
    failing(3, "query-error", "did you mean churned?", "ask", data, "churnd")
    failing(2, "invalid-argument", "--rows", "plan", "--rows", "many")
    failing(2, "invalid-argument", "rows == 5", "plan", "--rows", 5, "--questions", 1)
    failing(1, "data-error", "there is no file", "verify", tmp_path / "none")
    failing(1, "error", f"{tmp_path}: Is a directory.", "verify", tmp_path)
    failing(2, "invalid-argument", "no ledger", "list", "--ledger", tmp_path / "none")
    assert "Try: afresh ask --help" in str(
        failing(2, "invalid-argument", "No such option", "ask", "--nothing")["notes"]
    )
    afresh("ask", data, "churned", "--questions", 1)
    told = failing(4, "budget-exhausted", "are spent", "ask", data, "tenure < 3")
    assert (told["asked"], told["spent"], told["questions"]) == (1, 1, 1)
    failing(5, "plan-mismatch", "questions=1", "ask", data, "churned", "--questions", 2)


def test_list_says_what_a_ledger_holds(data: Path, tmp_path: Path) -> None:
    afresh("ask", data, "churned", "--questions", 20, "--analyst", "ann")
    other = tmp_path / "other.parquet"
    wide = {f"a{i}": np.arange(100.0) + i for i in range(9)}
    pd.DataFrame(wide | {"line\nbreak": range(100)}).to_parquet(other)
    afresh("ask", other, "a0 < 5", "--dry-run", "--questions", 5, "--allow-wide")
    first, second = json.loads(afresh("list", "--json").stdout)["datasets"]
    assert (first["rows"], first["opened_by"], first["spent"], first["left"]) == (3000, "ann", 1, 19)
    assert (first["fixed"], first["columns"]) == (True, ["amount", "churned", "tenure"])
    assert (second["rows"], second["spent"], second["fixed"], second["last_asked_at"]) == (100, 0, False, None)
    receipt = tmp_path / "receipt.json"
    afresh("receipt", data, "--out", receipt)
    assert json.loads(receipt.read_text())["data"]["name"] == first["data"]
    text = afresh("list").stdout
    assert "holds 2 datasets" in text
    assert "and 4 more" in text
    assert max(map(len, text.splitlines()[1:])) <= 100  # the first names a file
    assert "p4ss" not in afresh("list", "--ledger", "postgresql://ann:p4ss@127.0.0.1:1/x").stderr


def test_a_dry_run_says_the_price_and_asks_nothing(data: Path) -> None:
    asked = ("ask", data, "amount", "--bounds", -10, 500)
    told = json.loads(afresh(*asked, "--dry-run", "--json").stdout)
    assert (told["question"], told["answers"], told["left"]) == ("amount within [-10, 500]", 1, 100)
    assert json.loads(afresh(*asked, "--missing", 0, "--dry-run", "--json").stdout)["answers"] == 1
    assert "Costs 1 answer;" in afresh(*asked, "--dry-run").stdout
    grouped = (*asked, "--missing", 0, "--where", "churned", "--dry-run")
    assert "if the group has half of the rows" in " ".join(afresh(*grouped).stdout.split())
    assert list(json.loads(afresh(*grouped, "--share", 0.3, "--json").stdout)["half_widths"]) == ["0.3"]
    assert "--share goes with --dry-run" in afresh(*asked, "--share", 0.3).stderr
    assert json.loads(afresh("budget", data, "--json").stdout)["spent"] == 0
