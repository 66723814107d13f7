"""Evaluations of a service: candidates go up, are unpacked without trust and run there, and verdicts come back."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from schemathesis import GenerationMode

import afresh
from afresh.errors import BudgetExhausted, EvaluatorFailed, InvalidArgument, NotFound, TooLarge
from afresh.judging.files import MOST_FILES, read_candidate, unpacked
from afresh.receipts import verify
from cli.program import afresh as run_program
from judging.made import BASELINE, PERFECT, POOR, candidate, make
from server.made_up import try_out
from server.running import Service, running
from server.visiting import session

CONFIG = """
state = "state"
tick = 0.01
{ledger}
{more}
"""


def serve_config(folder: Path) -> str:
    own = make(folder).read_text()
    top, _, evaluator = own.partition("[evaluator]")
    return f"[evaluations.qa]{top}description = 'Questions'\n[evaluations.qa.evaluator]{evaluator}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "customers.parquet").touch()  # there are no rows here
    with running(folder, more=serve_config(folder), config=CONFIG) as found:
        yield found


def test_a_candidate_is_a_path_or_bytes(service: Service, tmp_path: Path) -> None:
    """Whatever people pass: a str is a path, so that a mistyped one is free; the same file is the same candidate."""
    place = candidate(tmp_path, f"{POOR}# as a path\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "candidate.py").write_text(POOR)
    with afresh.connect(service.url, service.token("paths")) as found:
        judge = found.evaluation("qa")
        spent = judge.budget.spent
        tried = [judge.try_open(each) for each in (str(place), place, judge.read(place))]
        tried.append(judge.try_open(place.read_bytes(), name="candidate.py"))
        assert len({each.candidate for each in tried}) == 1
        assert judge.try_open(place.read_bytes()).candidate.startswith("candidate ")
        assert judge.propose(str(place)).charged == 1
        assert judge.propose(place.read_bytes(), name="candidate.py").charged == 0
        assert judge.propose(place).verdict.startswith("not accepted: candidate.py")
        with pytest.raises(EvaluatorFailed):  # this evaluator runs one file
            judge.try_open(folder)
        for wrong in (
            "candidat.py",
            "Answer in one word.",
            "def solve(item):\n    return 1.0\n",
            "a\0b",
            tmp_path / "no",
        ):
            with pytest.raises(InvalidArgument, match=r"cannot be read.* content as bytes|name"):
                judge.propose(wrong)
        for odd in ("", 7, None, ["candidate.py"]):
            with pytest.raises(InvalidArgument, match="candidate == "):
                judge.propose(odd)  # type: ignore[arg-type]
        with pytest.raises(TooLarge):
            judge.propose(b"#" * (judge.most + 1))
        assert judge.budget.spent == spent + 1


def test_the_client_has_the_methods_of_a_local_judge(service: Service, tmp_path: Path) -> None:
    with afresh.connect(service.url, service.token()) as found:
        assert found.evaluations["qa"]["rows"] == 400
        assert "qa" in str(found)
        judge = found.evaluation("qa")
        assert len(judge.open_items()) == 200
        assert judge.check().incumbent.startswith("baseline")
        before, asked = judge.budget.spent, len(judge.transcript.records)
        poor, perfect = (judge.read(candidate(tmp_path, text)) for text in (POOR, PERFECT))
        tried = judge.try_open(perfect)
        assert tried.open_score == 1.0
        assert tried.chance > 0.9
        assert not judge.propose(poor)
        accepted = judge.propose(perfect)
        assert accepted
        assert "accepted: candidate.py" in str(accepted)
        assert judge.propose(perfect).charged == 0
        assert judge.compare(poor, perfect).better == "B"
        assert judge.score(perfect).low > 0.8
        assert judge.exam(perfect).score.value == 1.0
        assert judge.budget.spent == before + 4
        assert len(judge.transcript.records) == asked + 6
        with pytest.raises(EvaluatorFailed) as failed:
            judge.try_open(judge.read(candidate(tmp_path, "raise ValueError('why')\n")))
        assert "ValueError: why" in failed.value.output
        with pytest.raises(NotFound, match="there are: qa"):
            found.evaluation("other")
    document = service.get("/v1/evaluations/qa/receipt").json()
    assert verify(json.dumps(document)).passed


def test_pages_show_evaluations(service: Service, tmp_path: Path) -> None:
    """Its list, what is left of its budget, and every verdict of its gate, to whoever has a token for it."""
    with afresh.connect(service.url, service.token()) as found:
        judge = found.evaluation("qa")
        judge.propose(judge.read(candidate(tmp_path, POOR)))
    client = session(service, service.token("vera", "viewer"))
    assert 'href="/evaluations/qa"' in client.get("/evaluations").text
    page = client.get("/evaluations/qa").text
    assert "answers left" in page
    (link, *_) = re.findall(r'href="(/evaluations/qa/answers/\d+)"', page)
    assert "charged" in client.get(link).text
    assert client.get("/evaluations/qa/answers/99999").status_code == 404
    assert verify(client.get("/evaluations/qa/receipt.json").text).passed
    assert "Nothing" not in page
    narrow = session(service, service.token("nina", datasets=("other",)))
    assert "qa" not in narrow.get("/evaluations").text
    for path in ("/evaluations/qa", link, "/evaluations/qa/receipt.json"):
        assert narrow.get(path).status_code == 404
        assert httpx.get(service.url + path).status_code == 303


def test_a_shell_command_takes_an_address(service: Service, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_program("evaluate", f"{service.url}/qa", *arguments, AFRESH_TOKEN=service.token("bob"))

    own = candidate(tmp_path, POOR + "# mine", "solve.py")
    rejected = run("--json", str(own))
    assert (rejected.returncode, rejected.stderr) == (10, "")
    assert json.loads(rejected.stdout)["accepted"] is False
    assert run("--config", "x.toml", str(own)).returncode == 2


def test_uploads_by_hand_in_every_form_are_one_candidate(service: Service) -> None:
    text = (POOR + "# by hand").encode()
    path = "/v1/evaluations/qa/try?name=mine&file=solve.py"
    plain = service.call("POST", path, content=text, headers={"Content-Type": "application/octet-stream"})
    assert plain.status_code == 200, plain.text
    as_json = service.post(
        "/v1/evaluations/qa/try", {"candidates": [{"name": "mine", "file": {"solve.py": text.decode()}}]}
    )
    assert as_json.json()["candidate"] == plain.json()["candidate"]


def zipped(*members: tuple[str, bytes], mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, content in members:
            member = zipfile.ZipInfo(name)
            member.external_attr, member.compress_type = mode << 16, method
            made.writestr(member, content)
    return out.getvalue()


def tarred(name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = "", times: int = 1) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for _ in range(times):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            made.addfile(member, io.BytesIO(content))
    return out.getvalue()


ZIP, TAR, GZIP = "application/zip", "application/x-tar", "application/gzip"
HOSTILE = [
    (zipped(("../x", b"x")), ZIP),
    (zipped(("/etc/x", b"x")), ZIP),
    (zipped(("a\\..\\..\\x", b"x")), ZIP),
    (zipped(("C:x", b"x")), ZIP),
    (zipped(("a", b"/etc/passwd"), mode=0o120777), ZIP),
    (zipped(("a", b"x"), mode=0o020666), ZIP),
    (zipped(("a", b"x"), ("a/b", b"x")), ZIP),
    (zipped(("a//b", b"x")), ZIP),
    (zipped(("a\nb", b"x")), ZIP),
    (zipped(("/".join(["d"] * 40), b"x")), ZIP),
    (zipped(("n" * 300, b"x")), ZIP),
    (zipped(), ZIP),
    (b"PK\x03\x04 no zip", ZIP),
    (zipped(("a", b"x"))[:-10], ZIP),
    (tarred("../x"), TAR),
    (tarred("/x"), TAR),
    (tarred("a", kind=tarfile.SYMTYPE, link="/etc/passwd"), TAR),
    (tarred("a", kind=tarfile.LNKTYPE, link="/etc/passwd"), TAR),
    (tarred("a", kind=tarfile.CHRTYPE), TAR),
    (tarred("a", kind=tarfile.FIFOTYPE), TAR),
    (tarred("a", times=2), TAR),
    (b"no tar", TAR),
    (b"no gzip", GZIP),
    (zlib.compress(b"x"), GZIP),
]


@pytest.mark.parametrize(("body", "media"), HOSTILE)
def test_hostile_archives_are_refused(body: bytes, media: str) -> None:
    with pytest.raises(InvalidArgument, match=r"archive|candidate"):
        unpacked(body, media, "x", 20_000, "name")


def test_bombs_are_refused_while_they_are_unpacked() -> None:
    most = 1_000_000
    many = zipped(*((f"f{i}", b"") for i in range(MOST_FILES + 1)), method=zipfile.ZIP_STORED)
    packer = zlib.compressobj(wbits=31)
    gzip = packer.compress(bytes(200 * most)) + packer.flush()
    for body, media in (
        (zipped(("a", bytes(50 * most))), ZIP),
        (zipped(("a", bytes(most - 1)), ("b", b"xx")), ZIP),
        (many, ZIP),
        (gzip, GZIP),
        (bytes(most + 1), TAR),
        (bytes(most + 1), "application/octet-stream"),
    ):
        with pytest.raises(TooLarge):
            unpacked(body, media, "x", most, "name")


def test_a_folder_an_archive_and_a_zip_of_the_same_files_are_one_candidate(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "lib").mkdir(parents=True)
    (own / "solve.py").write_text(BASELINE)
    (own / "lib" / "run.sh").write_text("#!/bin/sh\n")
    (own / "lib" / "run.sh").chmod(0o755)
    folder = read_candidate(own, 10_000)
    body, media = folder.packed()
    (tmp_path / "own.tar").write_bytes(body)
    files = [read_candidate(tmp_path / "own.tar", 100_000, "own"), unpacked(body, media, "x", 100_000, "own")]
    assert {each.digest for each in files} == {folder.digest}
    assert folder.write(tmp_path) == "candidate"
    assert os.access(tmp_path / "candidate" / "lib" / "run.sh", os.X_OK)
    with pytest.raises(TooLarge):
        read_candidate(own, 20)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"candidates": []}, "1 candidates"),
        ({"candidates": [{"name": "a"}]}, "an object such as"),
        ({"candidates": [{"name": "a", "files": {"../x": "y"}}]}, "plain names"),
        ({"candidates": [{"name": "", "files": {"x": "y"}}]}, "name"),
        ({"candidates": [{"name": "a", "files": {"x": "!"}, "base64": True}]}, "base64"),
        ({"candidates": [{"name": "a", "file": {"x": "1", "y": "2"}}]}, "one content"),
        ({"candidates": [{"name": "a", "files": {"x": "1"}, "analyst": "ann"}]}, "an object such as"),
        ([], "1 candidates"),
    ],
)
def test_bad_bodies_cost_nothing(service: Service, body: Any, said: str) -> None:
    before = service.get("/v1/evaluations/qa/budget").json()["spent"]
    found = service.post("/v1/evaluations/qa/propose", body)
    assert found.status_code == 422
    assert said in found.json()["detail"]
    assert service.get("/v1/evaluations/qa/budget").json()["spent"] == before


def test_roles_caps_and_frozen_evaluations(service: Service, tmp_path: Path) -> None:
    body = {"candidates": [{"name": "c", "file": {"c.py": POOR + "# capped"}}]}
    assert service.post("/v1/evaluations/qa/propose", body, service.token("eve", "viewer")).status_code == 403
    assert service.get("/v1/evaluations/qa", service.token("fred", datasets=("other",))).status_code == 404
    capped = service.token("carl", cap=0)
    with afresh.connect(service.url, capped) as found:
        judge = found.evaluation("qa")
        files = judge.read(candidate(tmp_path, POOR + "# capped", "c.py"), "c")
        with pytest.raises(BudgetExhausted, match="this token"):
            judge.propose(files)
    steward = service.token("sam", "steward")
    assert service.call("PUT", "/v1/evaluations/qa/freeze", steward, json={"why": "it has ended."}).status_code == 200
    refused = service.post("/v1/evaluations/qa/propose", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "frozen")
    assert service.call("DELETE", "/v1/evaluations/qa/freeze", steward).status_code == 200


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_made_up_requests_are_answered_or_refused(service: Service, mode: GenerationMode) -> None:
    document = httpx.get(f"{service.url}/v1/openapi.json").json()
    schema, seen = schemathesis.openapi.from_dict(document), set[int]()
    doors = [(path, verb) for path, verbs in document["paths"].items() for verb in verbs if "evaluations" in path]
    assert len(doors) == 14
    for path, verb in doors:
        if not path.endswith("freeze") and (mode is GenerationMode.POSITIVE or verb == "post"):
            cases = schema[path][verb.upper()].as_strategy(generation_mode=mode)
            try_out(service, cases, path, seen, ["qa"], "analyst")
    assert (200 in seen) is (mode is GenerationMode.POSITIVE)
    assert 422 in seen
