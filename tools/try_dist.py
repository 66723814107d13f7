"""Install what `make dist` built in clean environments, bare and with each extra alone, and use it.

    python tools/try_dist.py                              # every extra on this Python
    python tools/try_dist.py --python python3.12 --python python3.13 --extra "" --extra sklearn

Each environment is made in a temporary folder with venv and pip, and removed. First afresh is installed bare: it must
answer, and what needs the extra must name it. Then the extra is installed by the command in that message, and used.
A package without a build for a Python is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN = """
import json, os, subprocess, sys, time, urllib.request
from pathlib import Path
import afresh

assert Path(sys.prefix) in Path(afresh.__file__).parents, afresh.__file__
program = str(Path(sys.prefix) / "bin" / "afresh")
run = lambda *words, **more: subprocess.run([program, *words], capture_output=True, text=True, timeout=300, **more)
opened = lambda data, **options: afresh.open(data, 50, ledger=":memory:", allow_wide=True, **options)
"""
ASK = """
afresh.datasets.flights(2000).write_parquet("flights.parquet")
done = run("ask", "flights.parquet", "cancelled", "--questions", "5", "--json")
told = json.loads(done.stdout)
assert told["low"] <= told["value"] <= told["high"]
"""
# What each extra is for, in lines that fail without it.
USES = {
    "": "assert afresh.plan(1000, 10).half_width() < 0.5",
    "frames": """
guard = opened("flights.parquet")
guard.ask("cancelled")
assert len(guard.transcript.to_pandas()) == 1
import pandas
assert 0 <= opened(pandas.DataFrame({"x": range(999)})).ask("x < 500").value <= 1
""",
    "ibis": """
import ibis
table = ibis.memtable({"x": list(range(999))})
assert 0 <= opened(table).ask(table.x < 500).value <= 1
""",
    "inspect": """
Path("log.eval").write_bytes(b"")
try:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    said = ModelOutput.from_content("mockllm/model", "yes")
    said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or it downloads a tokenizer
    task = Task(dataset=[Sample(id=i, input="Is it?", target="yes") for i in range(3)], scorer=match())
    model = get_model("mockllm/model", custom_outputs=lambda *_: said)
    (log,) = eval(task, model=model, display="none", log_dir="logs")
    place = log.location
except ModuleNotFoundError:
    place = "log.eval"
assert len(afresh.evaluations.read(place)) == 3
""",
    "mcp": """
hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
         "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}}}
done = run("mcp", "flights.parquet", "--questions", "5", input=json.dumps(hello) + "\\n")
if "afresh[" in done.stderr:
    sys.exit(done.stderr)
assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "afresh", done.stderr
""",
    "lab": """
from afresh.lab.pictures import save, subplots
figure, panels = subplots(1, 1, (3, 2))
panels[0, 0].plot([0, 1])
assert save(figure, Path("lab.png")).exists()
asked = ("--rows", "500", "--questions", "5", "--repeats", "1", "--processes", "1", "--out", "lab")
done = run("lab", "coverage", *asked, "--mechanism", "rounds", "--analyst", "scientist", "--population", "fair")
assert done.returncode == 0, done.stderr
""",
    "optuna": """
from afresh.integrations.optuna import GuardedObjective
import numpy, optuna
holdout = afresh.holdout(numpy.zeros((900, 1)), numpy.arange(900) % 2, questions=9, ledger=":memory:", allow_wide=True)
study = optuna.create_study(direction="minimize")
study.optimize(GuardedObjective(holdout, lambda trial: numpy.full(900, trial.suggest_int("x", 0, 1))), n_trials=2)
""",
    "plot": """
answers = opened("flights.parquet").ask_many(["cancelled"])
answers.plot().figure.savefig("answers.png")
""",
    "postgres": """
try:
    opened("postgresql://127.0.0.1:1/none", table="rows")
except (afresh.errors.DataError, afresh.errors.EngineError):  # nobody is there
    import psycopg
""",
    "client": """
try:
    afresh.connect("http://127.0.0.1:1", "a-token").open("flights")
except afresh.errors.Unreachable:
    import httpx
""",
    "server": """
Path("afresh.toml").write_text('port = 0\\n[datasets.flights]\\ndata = "flights.parquet"\\nquestions = 9\\n')
done = run("serve", "afresh.toml", "--check")
if done.returncode:
    sys.exit(done.stderr)
import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
Path("afresh.toml").write_text(Path("afresh.toml").read_text().replace("port = 0", f"port = {port}"))
token = run("token", "new", "ann", "--dataset", "flights", check=True).stdout.strip()
served = subprocess.Popen([program, "serve", "afresh.toml"], stderr=open("serve.log", "w"))
try:
    for _ in range(300):
        if served.poll() is not None:
            sys.exit(Path("serve.log").read_text())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready"):
                break
        except OSError:
            time.sleep(0.2)
    with afresh.connect(f"http://127.0.0.1:{port}", token) as service:
        assert 0 <= service.open("flights").ask("cancelled").value <= 1
finally:
    served.terminate()
    served.wait()
""",
    "sklearn": """
from afresh.integrations.sklearn import GuardedSearchCV
import afresh.learn, numpy
from sklearn.tree import DecisionTreeClassifier
X, y = numpy.arange(3000).reshape(-1, 1) % 7, numpy.arange(3000) % 2
holdout = afresh.holdout(X[900:], y[900:], questions=9, open=0.5, ledger=":memory:", allow_wide=True)
search = GuardedSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, holdout=holdout).fit(X[:900], y[:900])
assert 0 <= search.best_score_ <= 1
""",
    "spark": """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
assert 0 <= opened(spark.range(999).toDF("x")).ask("x < 500").value <= 1
spark.stop()
""",
}
USES["all"] = "\n".join(use for extra, use in USES.items() if extra not in ("", "inspect", "spark"))
# Of these the library itself is what people use first: without it there is nothing to hand to afresh.
THEIRS = ("", "ibis", "spark", "all")


def extras() -> list[str]:
    """None, and every extra of pyproject.toml."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return ["", *found]


def built() -> tuple[Path, Path]:
    """The newest wheel and source distribution in dist/."""
    wheels, sources = (sorted((ROOT / "dist").glob(each), key=os.path.getmtime) for each in ("*.whl", "*.tar.gz"))
    if not wheels or not sources:
        sys.exit("dist/ has no wheel and source distribution; run make dist first.")
    return wheels[-1], sources[-1]


def tried(python: str, archive: Path, extra: str, uv: str | None = None) -> str | None:
    """What went wrong in a clean environment, or None."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "env"
        bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        bare |= {"AFRESH_LEDGER": str(Path(folder) / "ledger.sqlite"), "MPLBACKEND": "agg", "COLUMNS": "200"}
        # As in an activated environment: Spark's workers run the first python3 of the path.
        bare["PATH"] = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
        inside = str(environment / "bin" / "python")

        def failed(*command: str) -> str | None:
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=bare)
            if done.returncode == 0:
                return None
            said = [line for line in (done.stderr or done.stdout).strip().splitlines() if "notice" not in line]
            return re.sub(r"\s+", " ", said[-1] if said else f"exit code {done.returncode}")[:300]

        def install(wanted: str) -> str | None:
            if uv is not None:
                return failed(uv, "pip", "install", "--quiet", "--python", inside, wanted)
            pip = [inside, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
            return failed(*pip, wanted)

        use = BEGIN + USES[extra]
        wrong = failed(python, "-m", "venv", *(["--without-pip"] if uv else []), str(environment))
        wrong = wrong or install(str(archive)) or failed(inside, "-c", BEGIN + ASK)
        if wrong or not extra:
            return wrong or failed(inside, "-c", use)
        if extra not in THEIRS:
            message = failed(inside, "-c", use)
            if message is None or f"pip install 'afresh[{extra}]'" not in message:
                return f"without the extra: {message or 'it worked'}"
        return install(f"afresh[{extra}]") or failed(inside, "-c", use)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try everything that was asked for; the number of failures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated (default: this one)")
    parser.add_argument("--extra", action="append", help='an extra, "" for none; may be repeated (default: each)')
    parser.add_argument("--uv", metavar="PATH", help="install with this uv, which is faster than pip")
    chosen = parser.parse_args(arguments)
    wheel, source = built()
    failures = 0
    for python in chosen.python or [sys.executable]:
        if shutil.which(python) is None:
            print(f"{python}: not found", flush=True)
            failures += 1
            continue
        for archive, extra in [(source, ""), *((wheel, each) for each in chosen.extra or extras())]:
            start = time.monotonic()
            wrong = tried(python, archive, extra, chosen.uv)
            failures += wrong is not None
            name = f"{Path(python).resolve().name} {archive.name}" + (f"[{extra}]" if extra else "")
            outcome = wrong or "installs and works"
            print(f"{name}: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
