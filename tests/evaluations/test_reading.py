"""Result files of other tools: each is read, and what is wrong with one is said without a score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import DataError, InvalidArgument, MissingExtra
from afresh.evaluations import Results, read

SAMPLES = Path(__file__).parent / "samples"
WANTED = {"a": [1.0], "b": [0.5]}


def scores(found: Results) -> dict[str, list[float]]:
    told: dict[str, list[float]] = {}
    for id, score in zip(found.ids, found.scores, strict=True):
        told.setdefault(id, []).append(score)
    return told


FRAME = pd.DataFrame({"id": ["a", "b"], "score": [1.0, 0.5]})


@pytest.mark.parametrize(
    "results",
    [
        {"a": 1, "b": 0.5},
        {"a": True, "b": [0.5]},
        [{"id": "a", "score": 1}, {"id": "b", "score": "0.5"}],
        FRAME,
        FRAME.set_index("id")["score"],
        pl.from_pandas(FRAME),
        pa.table({"id": ["a", "b"], "correct": [1.0, 0.5]}),
    ],
    ids=["mapping", "lists", "dicts", "pandas", "series", "polars", "arrow"],
)
def test_what_is_in_memory(results: Any) -> None:
    assert scores(read(results)) == WANTED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.jsonl", '{"id": "a", "score": true}\n\n{"id": "b", "score": 0.5}\n'),
        ("r.csv", "id,score\na,1\nb,0.5\n"),
        ("r.tsv", "id\tscore\na\tpass\nb\t.5\n"),
        ("r.json", '{"a": 1, "b": 0.5}'),
        ("list.json", '[{"id": "a", "score": 1}, {"id": "b", "score": 0.5}]'),
        ("bom.csv", "\ufeffid,score\na,1\nb,0.5\n"),
    ],
)
def test_tables_in_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert scores(read(tmp_path / name)) == WANTED


def test_a_parquet_file_and_ids_that_are_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"item": [1, 2], "epoch": [1, 1], "right": [1.0, 0.5]}).to_parquet(tmp_path / "r.parquet")
    found = read(tmp_path / "r.parquet", id="item", score="right")
    assert (found.ids, found.scores, found.trials) == (["1", "2"], [1.0, 0.5], [1, 1])


def test_trials_are_told_apart(tmp_path: Path) -> None:
    rows = [{"id": "a", "score": 1}, {"id": "a", "score": 0}]
    assert read(rows).trials == [0, 0]  # which the evaluation refuses as two scores of one trial
    assert read(rows, trials=True).trials == [0, 1]
    assert read({"a": [1, 0]}).trials == [0, 1]


def test_lm_evaluation_harness() -> None:
    """A file that lm-eval 0.4.13 wrote with its dummy model."""
    path = SAMPLES / "lm_eval.jsonl"
    with pytest.raises(DataError, match=r"several scores: \['acc', 'acc_norm'\]; name one"):
        read(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = read(path, score="acc")
    assert scores(found) == {str(line["doc_id"]): [line["acc"]] for line in lines}
    assert read(path, score="acc,none") == found
    assert read(path, score="acc", id="key").ids == [line["doc"]["key"] for line in lines]


def test_lm_evaluation_harness_with_two_filters(tmp_path: Path) -> None:
    line = {"doc_id": 0, "filtered_resps": [], "metrics": ["exact_match"]}
    rows = [{**line, "filter": "strict", "exact_match": 0.0}, {**line, "filter": "flexible", "exact_match": 1.0}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="'exact_match,strict', 'exact_match,flexible'"):
        read(tmp_path / "s.jsonl")
    assert scores(read(tmp_path / "s.jsonl", score="exact_match,flexible")) == {"0": [1.0]}


def test_helm(tmp_path: Path) -> None:
    """As HELM's `PerInstanceStats` are written: a list of instances, each with statistics by name and split."""

    def stat(name: str, mean: float, **more: Any) -> dict[str, Any]:
        return {"name": {"name": name, "split": "test", **more}, "count": 1, "sum": mean, "mean": mean}

    noisy = {"name": "typos", "robustness": True}
    rows: list[dict[str, Any]] = [
        {"instance_id": "id1", "train_trial_index": 0, "stats": [stat("exact_match", 1.0), stat("f1_score", 0.5)]},
        {"instance_id": "id1", "train_trial_index": 1, "stats": [stat("exact_match", 0.0), stat("f1_score", 0.5)]},
        {"instance_id": "id1", "perturbation": noisy, "stats": [stat("exact_match", 0.0, perturbation=noisy)]},
        {"instance_id": "id2", "train_trial_index": 0, "stats": [stat("exact_match", 1.0), stat("f1_score", 1.0)]},
    ]
    path = tmp_path / "per_instance_stats.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(DataError, match="'exact_match:test', 'f1_score:test'"):
        read(path)
    for name in ("exact_match", "exact_match:test"):
        assert scores(read(path, score=name)) == {"id1": [1.0, 0.0], "id2": [1.0]}
    path.write_text(json.dumps([{"instance_id": "id1", "stats": [{"name": "no metric"}]}]))
    with pytest.raises(DataError, match=r"per_instance_stats\.json of a run"):
        read(path)


def test_promptfoo() -> None:
    path = SAMPLES / "promptfoo.json"
    with pytest.raises(DataError, match="several candidates: \\['echo, prompt 0', 'echo, prompt 1'\\]"):
        read(path)
    assert scores(read(path, candidate="echo, prompt 0")) == {"a": [1.0], "b": [0.25, 0.75]}
    assert scores(read(path, candidate="echo, prompt 1", score="tone")) == {"a": [1.0], "b": [1.0]}


def test_what_pytest_writes(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
        import pytest
        class TestIt:
            def test_right(self): pass
            @pytest.mark.parametrize("x", [1, 2])
            def test_half(self, x): assert x == 1
            @pytest.mark.skip
            def test_left_out(self): pass
        def test_broken(nothing_of_this_name): pass
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml=r.xml", "-p", "no:cacheprovider", "test_it.py"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take longer than the tests
    subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, check=False)
    assert scores(read(tmp_path / "r.xml")) == {
        "test_it.TestIt::test_right": [1.0],
        "test_it.TestIt::test_half[1]": [1.0],
        "test_it.TestIt::test_half[2]": [0.0],
        "test_it.TestIt::test_left_out": [0.0],
        "test_it::test_broken": [0.0],
    }


def test_no_entity_is_ever_expanded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a")
    for declared in (f'<!ENTITY x SYSTEM "file://{secret}">', '<!ENTITY x "a">', ""):
        (tmp_path / "r.xml").write_text(f'<!DOCTYPE t [{declared}]><t><testcase name="a">&amp;</testcase></t>')
        with pytest.raises(DataError, match="declares a document type"):
            read(tmp_path / "r.xml")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.jsonl", '{"id": "a", "score": 1}\nnonsense', "no JSON object on line 2"),
        ("r.jsonl", '{"id": "a", "x": 1, "y": 1}', r"several scores: \['x', 'y'\]"),
        ("r.jsonl", '{"name": "a", "score": 1}', "has no 'id'"),
        ("r.csv", "id,score\na\n", "rows of different lengths"),
        ("r.csv", "id,score\n", "has no rows"),
        ("r.json", "{", "is not JSON"),
        ("r.xml", "<t>", "is not XML"),
        ("r.xml", "<t/>", "no test cases"),
        ("r.docx", "", "has an unknown file type"),
        ("r.json", '{"results": {"results": []}}', "has no results"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        read(tmp_path / name)


LM_EVAL_SUMMARY: dict[str, Any] = {
    "results": {"arc_easy": {"alias": "arc_easy", "acc,none": 0.7, "acc_stderr,none": 0.01}},
    "configs": {"arc_easy": {}},
    "versions": {"arc_easy": 1.0},
    "n-shot": {"arc_easy": 0},
    "git_hash": "abc123",
    "date": 1718000000.5,
    "eval": None,
}
GEO = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"id": 1}}]}


@pytest.mark.parametrize(
    ("name", "found", "says"),
    [
        ("package.json", {"name": "a", "version": "1.0.0", "private": True, "scripts": {}}, "keys: .'name', 'version'"),
        ("results.json", LM_EVAL_SUMMARY, "an object with 7 keys: .'results', 'configs'"),
        ("map.geojson.json", GEO, "keys: .'type', 'features'"),
        ("list.json", [0.5, 1, 0], "a list of 3, the first of which is a number"),
        ("texts.json", ["a", "b"], "a list of 2, the first of which is text"),
        ("lists.json", [[0.5]], "a list of 1, the first of which is a list of 1"),
        ("words.json", {"a": "yes", "b": "no"}, "an object with 2 keys"),
        ("nested.json", {"a": {"score": 1}, "b": {"score": 0}}, "an object with 2 keys"),
        ("empty.json", {}, "an empty object"),
        ("nothing.json", [], "an empty list"),
        ("number.json", 7, "a number"),
        ("text.json", "a", "text"),
        ("null.json", None, "null"),
        ("metrics.json", {"accuracy": 0.8, "f1": 0.75, "n": 400}, "item 'n' is 400"),
        ("years.json", {"date": 2024, "hash": 7, "eval": 1}, "item 'date' is 2024"),
        ("nan.json", {"a": 1.0, "b": float("nan")}, "item 'b' is not a number"),
        ("infinite.json", {"a": 1.0, "b": float("inf")}, "item 'b' is inf"),
        ("missing.json", {"a": 1.0, "b": 0.5, "c": None}, "item 'c' is not a number"),
        ("rows.json", [{"name": "a", "score": 1}], "fields are .'name', 'score'.; name the one with ids"),
        ("rows.json", [{"id": "a", "answer": "Paris"}], "no scores in 'answer'; its fields are .'id', 'answer'"),
        ("rows.json", [{"id": "a", "answer": {"text": 1}}], "no scores in 'answer'"),
        ("rows.jsonl", [{"id": "a", "score": float("-inf")}], "item 'a' is -inf"),
        ("rows.jsonl", [{"id": "a", "score": 5}, {"id": "b", "score": 1}], "item 'a' is 5"),
        ("samples.jsonl", [{"task": "arc", "acc": 0.7}], "no 'id', an item's id; its fields are .'task', 'acc'"),
        ("log.jsonl", [{"id": "a", "level": "INFO"}, {"id": "b", "level": "WARN"}], "no scores in 'level'"),
        ("cities.csv", "city,population\nBern,134591\n", "its fields are .'city', 'population'"),
        ("people.csv", "id,name\n1,Ann\n2,Bob\n", "no scores in 'name'"),
        ("money.csv", "id,score\n1,12.5\n", "item '1' is 12.5"),
        ("empty.csv", "id,score\n1,\n", "item '1' is not a number"),
    ],
)
def test_what_no_reader_recognizes_is_refused_with_what_it_is(tmp_path: Path, name: str, found: Any, says: str) -> None:
    if name.endswith(".csv"):
        text = found
    else:
        text = "\n".join(map(json.dumps, found)) if name.endswith(".jsonl") else json.dumps(found)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({"a": "true", "b": "false"}, {"a": [1.0], "b": [0.0]}),
        ({"a": "1", "b": "0.5"}, {"a": [1.0], "b": [0.5]}),
        ({"a": [True, False], "b": ["pass", "fail"]}, {"a": [1.0, 0.0], "b": [1.0, 0.0]}),
    ],
)
def test_scores_that_are_spelled_out(tmp_path: Path, found: Any, wanted: dict[str, list[float]]) -> None:
    (tmp_path / "r.json").write_text(json.dumps(found))
    assert scores(read(tmp_path / "r.json")) == wanted


def test_an_error_of_an_evaluation_depends_on_no_guarded_score(tmp_path: Path) -> None:
    """A file of a candidate that left no score for most guarded items is read, and these count as 0."""
    ids = [f"q{i}" for i in range(2000)]
    with afresh.evaluation(ids, ledger=":memory:", exam=0) as evaluation:
        mine = {item["id"] for item in evaluation.open_items()}
        for left in (None, float("nan"), 7, "", "crashed"):
            (tmp_path / "r.json").write_text(json.dumps({id: 1 if id in mine else left for id in ids}))
            assert evaluation.score(tmp_path / "r.json", name=f"left {left}").high < 0.2
            with pytest.raises(DataError, match="score of item 'q"):
                read(tmp_path / "r.json")


def test_what_is_no_result_at_all() -> None:
    with pytest.raises(DataError, match="there is no file"):
        read("nowhere.jsonl")
    for wrong in (3, None, [], [1.0], b"a"):
        with pytest.raises(InvalidArgument, match="results =="):
            read(wrong)
    with pytest.raises(InvalidArgument, match="id == "):
        read({1.5: 1.0})


@given(st.dictionaries(st.text(min_size=1), st.none() | st.floats() | st.booleans() | st.text() | st.binary()))
def test_any_mapping_is_read_or_refused(results: dict[str, Any]) -> None:
    try:
        found = read(results)
    except (InvalidArgument, DataError):
        return
    assert all(0 <= score <= 1 for score in found.scores)


INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate

def answer(input, tools, tool_choice, config):
    number = int(input[-1].text.split()[-1])
    said = ModelOutput.from_content("mockllm/model", str(number) if number % 3 else "no")
    said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or it downloads a tokenizer
    return said

samples = [Sample(id=f"q{i}", input=f"say {i}", target=str(i)) for i in range(120)]
task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=[match(), includes()])
model = get_model("mockllm/model", custom_outputs=answer)
eval(task, model=model, epochs=2, log_dir=sys.argv[1], display="none")
"""


@pytest.mark.filterwarnings("ignore")
def test_inspect_end_to_end(tmp_path: Path) -> None:
    """Inspect runs its mock model and writes a log, which is read and scored."""
    subprocess.run([sys.executable, "-c", INSPECT, str(tmp_path)], check=True, capture_output=True)
    (log,) = tmp_path.glob("*.eval")
    with pytest.raises(DataError, match=r"several scores: \['match', 'includes'\]"):
        read(log)
    found = read(log, score="match")
    assert scores(found) == {f"q{i}": [float(i % 3 > 0)] * 2 for i in range(120)}
    assert sorted(set(found.trials)) == [1, 2]  # type: ignore[type-var]
    with afresh.evaluation([f"q{i}" for i in range(120)], ledger=":memory:") as evaluation:
        told = evaluation.exam(found, names=["mock", "none"]).score
        assert told.low <= 2 / 3 <= told.high


def test_inspect_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "r.eval").write_bytes(b"")
    with pytest.raises(MissingExtra, match=r"pip install 'afresh\[inspect\]'"):
        read(tmp_path / "r.eval")


LM_EVAL = """
import json, os, sys
os.environ |= {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": sys.argv[1]}
from pathlib import Path
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

folder = Path(sys.argv[1])
docs = [{"key": f"d{i}", "question": f"{i}?", "choices": ["a", "b"], "answer": i % 2} for i in range(120)]
(folder / "docs.jsonl").write_text("\\n".join(map(json.dumps, docs)))
(folder / "sums.yaml").write_text(f'''
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/docs.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
doc_to_choice: "{{{{choices}}}}"
metric_list: [{{metric: acc}}]
''')
tracker = EvaluationTracker(output_path=str(folder / "out"))
tasks = TaskManager(include_path=str(folder), include_defaults=False)
found = simple_evaluate(
    model="dummy", tasks=["sums"], task_manager=tasks, evaluation_tracker=tracker, log_samples=True
)
samples = found.pop("samples")
tracker.save_results_aggregated(results=found, samples=samples)
tracker.save_results_samples(task_name="sums", samples=samples["sums"])
"""


def test_lm_evaluation_harness_end_to_end(tmp_path: Path) -> None:
    """lm-eval runs its dummy model and writes a sample file, which is read and scored."""
    subprocess.run([sys.executable, "-c", LM_EVAL, str(tmp_path)], check=True, capture_output=True)
    (path,) = tmp_path.glob("out/*/samples_sums_*.jsonl")
    found = read(path, id="key")
    assert sorted(found.ids) == sorted(f"d{i}" for i in range(120))
    assert {*found.scores} <= {0.0, 1.0}
    with afresh.evaluation(found.ids, ledger=":memory:") as evaluation:
        told = evaluation.score(found, name="dummy")
        assert told.low <= sum(found.scores) / 120 <= told.high
