"""The pages in a real browser: one server and one browser for all of them."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, Route, expect

import afresh
from afresh.server.config import read_config
from afresh.server.store import store_of
from server.browser import WIDTHS, Person, browser
from server.running import ROWS, Service, running, write_data
from server.visiting import key_of, session

MORE = """
[datasets.small]
data = "small.parquet"
questions = 3
description = "<b>Few</b> answers & many 'quotes'"

[datasets.visits]
data = "visits.parquet"
questions = 40
rounds = 4
description = "Visits to a clinic, asked in rounds"
"""
BOARD = """
[boards.cup]
holdout = "churn"
description = "Who predicts churn best"
public = true
[boards.closed]
holdout = "churn"

[holdouts.weeks]
data = "weeks.parquet"
label = "y"
questions = 100
rounds = 4
[boards.league]
holdout = "weeks"
reveal = "rounds"

[holdouts.show]
data = "show.parquet"
label = "y"
questions = 60
exam = 0.2
[boards.spring]
holdout = "show"
description = "Who predicts best which customers will leave"
[boards.last]
holdout = "show"
"""
Arrive = Callable[..., Person]
expect.set_options(timeout=30_000)  # whatever else the machine does


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages")
    write_data(folder)
    chance = np.random.default_rng(8)
    pq.write_table(
        pa.table({"<i>odd": chance.random(2000) < 0.4, "age": chance.integers(18, 90, 2000)}), folder / "small.parquet"
    )
    pq.write_table(pa.table({"returned": chance.random(8000) < 0.2}), folder / "visits.parquet")
    for name, rows in {"weeks": ROWS, "show": 10 * ROWS}.items():
        x = chance.normal(size=rows)
        pq.write_table(pa.table({"x": x, "y": x + chance.normal(size=rows) > 0}), folder / f"{name}.parquet")
    with running(folder, MORE + BOARD) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def arrive(service: Service, chromium: Browser) -> Iterator[Arrive]:
    """Somebody arrives and signs in; what went wrong in their browser fails the test when it ends."""
    people: list[Person] = []

    def made(name: str = "ann", role: str = "analyst", **options: object) -> Person:
        people.append(Person.arrives(chromium, service.url, **options))
        return people[-1].signs_in(service.token(name, role))

    yield made
    for each in people:
        each.leaves()


def test_sign_in_and_out(service: Service, chromium: Browser) -> None:
    person = Person.arrives(chromium, service.url)
    page = person.goes("/datasets/customers/history")
    page.fill("#token", "afresh_wrong")
    page.click("main button")
    expect(page.get_by_role("alert")).to_contain_text("unknown here")
    assert person.wrong == [
        "console: Failed to load resource: the server responded with a status of 401 (Unauthorized)"
    ]
    person.wrong.clear()
    page.fill("#token", service.token())
    page.click("main button")
    expect(page).to_have_url(f"{service.url}/datasets/customers/history")  # where they wanted to go
    (cookie,) = person.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("afresh_session", True, "Lax")
    assert cookie["expires"] > 0
    assert service.token() not in json.dumps(person.context.storage_state())
    assert page.evaluate("() => document.cookie") == ""
    page.click("text=Sign out")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    person.goes("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    person.leaves()


def test_datasets_say_what_they_are(arrive: Arrive) -> None:
    page = arrive().goes("/")
    card = page.locator("li.card", has_text="customers")
    expect(card).to_contain_text("Customers of a shop")
    expect(card).to_contain_text(f"{ROWS:,} rows; up to 400 questions, ±")
    expect(card).to_contain_text("as long as checks pass")
    expect(card.locator("svg.gauge").first).to_have_accessible_name(re.compile(r"\d+ of 400 answers left"))
    expect(page.locator("li.card", has_text="small")).to_contain_text("<b>Few</b> answers & many 'quotes'")
    page.goto(page.url + "datasets/small")
    expect(page.locator(".dictionary")).to_contain_text("<i>odd")


def test_a_question_is_completed_checked_priced_and_answered(arrive: Arrive) -> None:
    page = arrive().goes("/datasets/customers")
    box = page.locator("#expression")
    box.press_sequentially("chu")
    expect(page.get_by_role("option", name="churned")).to_be_visible()
    box.press("Enter")
    expect(box).to_have_value("churned")
    box.press_sequentially(" AND tenur < 3")
    mistake = page.locator("#ask [data-mistake=expression]")
    expect(mistake).to_contain_text("did you mean tenure?")
    expect(box).to_have_attribute("aria-invalid", "true")
    box.fill("churned AND tenure < 3")
    expect(page.locator("#ask .price")).to_contain_text("Costs 1 answer")
    expect(page.locator("#ask .price")).to_contain_text("Expect about ±")
    expect(mistake).to_be_hidden()
    page.click("summary >> nth=0")
    page.fill("#where", "amount")
    expect(page.locator("#ask [data-mistake=where]")).to_contain_text("a group is a condition")
    page.fill("#where", "")
    box.fill("tenure")
    expect(page.locator("#ask [data-mistake=bounds]")).to_contain_text("bounds")
    page.fill("#low", "0")
    page.fill("#high", "120")
    expect(page.locator("#ask .price")).to_contain_text("Costs 1 answer;")
    box.press("Enter")
    expect(page.locator("#answers article").first).to_contain_text("guaranteed")
    expect(page.locator("#answers svg.bar")).to_have_count(1)
    expect(page.locator("#latest-title + .scroll tbody tr").first).to_contain_text("tenure within [0, 120]")


def test_a_refusal_and_an_empty_budget(arrive: Arrive, service: Service) -> None:
    person = arrive()
    page = person.goes("/datasets/small")
    for place, question in enumerate(("age < 30", "age < 40", "age < 50")):
        person.asks(question)
        expect(page.locator("#answers article")).to_have_count(place + 1)
    prices: list[Route] = []
    page.route("**/small/price", lambda route: prices.append(route))
    with page.expect_request("**/small/price"):
        person.asks("age < 60")
    refusal = page.locator("#ask [data-mistake=expression]")
    expect(refusal).to_contain_text("repeats of earlier questions are free")
    for late in prices:  # the price of what was typed comes after the refusal, and leaves it there
        late.continue_()
    page.unroute("**/small/price")
    expect(page.locator("#ask .price")).to_contain_text("age < 60")
    expect(refusal).to_contain_text("repeats of earlier questions are free")
    expect(page.locator("#live")).to_contain_text("0 of 3 answers left")
    person.asks("age < 40")
    expect(page.locator("#answers article").first).to_contain_text("Free: asked before")
    assert service.get("/v1/datasets/small/budget").json()["spent"] == 3


def test_rounds_are_batches(arrive: Arrive) -> None:
    page = arrive().goes("/datasets/visits")
    page.fill("#questions", "returned\nNOT returned")
    page.click("text=Ask this round")
    expect(page.locator("#answers article")).to_have_count(2)
    page.fill("#questions", "returned\nretur")
    page.click("text=Ask this round")
    expect(page.locator("[data-mistake=questions]")).to_contain_text("did you mean returned?")
    page.goto(page.url + "/history")
    expect(page.locator("tr.batch")).to_have_text("Round 1: 2,000 rows of its own")


def test_history_filters_and_pages(arrive: Arrive, service: Service) -> None:
    many = {"questions": [f"amount < {i}" for i in range(60)]}
    assert service.post("/v1/datasets/customers/ask_many", many, service.token("hana")).status_code == 200
    page = arrive().goes("/datasets/customers/history")
    expect(page.locator("#lines-title")).to_contain_text("questions")
    page.click("text=Older")
    expect(page.locator(".steps")).to_contain_text("Page 2 of")
    page.fill("#words", "AMOUNT < 7")
    page.select_option("#analyst", "hana")
    page.select_option("#scale", "standard")
    page.click("text=Show")
    expect(page.locator("#lines-title")).to_have_text("1 question")
    expect(page.locator("svg.forest").first).to_contain_text("share of each question's range")
    page.click("svg.forest a")
    expect(page.locator("article")).to_contain_text("amount < 7")
    expect(page.locator("article")).to_contain_text("by hana")


def test_two_analysts_at_once_see_each_other(arrive: Arrive) -> None:
    ann, bob = arrive("ann"), arrive("bob")
    theirs = [ann.goes("/datasets/customers"), bob.goes("/datasets/customers")]
    for page in theirs:
        expect(page.locator("#live")).to_be_visible()
    ann.asks("amount > 100")
    bob.asks("amount > 200")
    for page in theirs:  # nobody loads anything again
        expect(page.locator("#live")).to_contain_text("amount > 100")
        expect(page.locator("#live")).to_contain_text("amount > 200")
        expect(page.locator("#answers article")).to_have_count(1)
    expect(theirs[1].locator(".gauge-line", has_text="you")).to_contain_text("1 answer so far")


def upload(page: Page, name: str, content: bytes, against: str = "") -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "application/octet-stream", "buffer": content})
    if against:
        page.select_option("#against", label=page.locator("#against option", has_text=against).text_content() or "")
    page.click("#score button")


def test_predictions_are_scored_and_compared(arrive: Arrive, service: Service) -> None:
    held = pq.read_table(service.folder / "churn.parquet").to_pydict()
    good, ids = [x > 0 for x in held["x0"]], held["id"]
    bad = [not each for each in good]  # wrong for half of all rows more
    page = arrive().goes("/datasets/churn/models")
    upload(page, "bad.csv", ("id,bad\n" + "".join(f"{i},{c}\n" for i, c in zip(ids, bad, strict=True))).encode())
    expect(page.locator("#answers article")).to_contain_text("of bad")
    expect(page.locator("#against option", has_text="bad")).to_have_count(1)  # without loading it again
    parquet = io.BytesIO()
    pq.write_table(pa.table({"id": ids[::-1], "ours": good[::-1]}), parquet)
    upload(page, "ours.parquet", parquet.getvalue(), against="bad")
    expect(page.locator(".conclusion")).to_contain_text("ours is better than bad")
    page.reload()
    npy = io.BytesIO()
    np.save(npy, np.array(good))
    upload(page, "again.npy", npy.getvalue(), against="ours")
    expect(page.locator(".conclusion")).to_contain_text("same predictions for all rows")
    nearly = np.array(good)
    nearly[:3] ^= True
    upload(page, "near.csv", ("near\n" + "".join(f"{c}\n" for c in nearly)).encode(), against="ours")
    expect(page.locator(".conclusion")).to_contain_text("Cannot tell: do not report near as an improvement on ours")
    upload(page, "few.csv", b"near\ntrue\n")
    expect(page.locator("[data-mistake=file]")).to_contain_text("rows")
    upload(page, "model.pkl", b"x")
    expect(page.locator("[data-mistake=file]")).to_contain_text(".csv, .npy, .parquet")


def test_an_entry_appears_though_its_answer_was_known_before(arrive: Arrive, service: Service) -> None:
    """Nothing in the ledger changes with it; nor does it in the moment between an answer and its entry."""
    known = np.arange(ROWS) % 2 == 0
    with afresh.connect(service.url, service.token()) as connected:
        connected.holdout("churn").score(known, name="known")
    page, watching = (arrive(who).goes("/datasets/churn/models") for who in ("ann", "cleo"))
    npy = io.BytesIO()
    np.save(npy, known)
    upload(page, "known.npy", npy.getvalue())
    expect(page.locator("#against option", has_text="known")).to_have_count(1)
    expect(watching.locator("#live table").first).to_contain_text("known")


def test_a_board_shows_ties_to_anybody(arrive: Arrive, service: Service, chromium: Browser) -> None:
    held = pq.read_table(service.folder / "churn.parquet").to_pydict()
    good = np.array(held["x0"]) > 0
    page = arrive("cleo").goes("/boards/cup")
    # The last one is wrong for half of all rows more: more than 10 times what noise or the draw of rows could do.
    for name, made in {"good": good, "near": good ^ (np.arange(ROWS) < 3), "<b>bad": ~good}.items():
        npy = io.BytesIO()
        np.save(npy, made)
        page.fill("#title", name)
        upload(page, "made.npy", npy.getvalue())
        expect(page.locator("#answers article")).to_contain_text(f"{name}: ")
    anybody = Person.arrives(chromium, service.url)
    page = anybody.goes("/boards")
    expect(page.locator("li.card")).to_have_count(1)  # the other one is for those who have a token
    page.click("li.card a")
    expect(page.locator("#verdict")).to_have_text("2 of 3 may be the best")
    expect(page.locator("tr.batch")).to_have_text(["Tier 1: may be the best", "Tier 2"])
    expect(page.locator("table.board tbody")).to_contain_text("1 to 2")
    expect(page.locator("table.board tbody tr").last).to_contain_text("<b>bad")
    expect(page.locator("main")).to_contain_text("within a tier is not decided")
    page.wait_for_function("() => document.querySelector('main img').naturalWidth > 0")
    assert anybody.findings() == []
    with page.expect_download() as found:
        page.click("text=Table (CSV)")
    assert "bad" in Path(found.value.path()).read_text()
    anybody.goes("/boards/closed")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    anybody.leaves()


def test_a_file_is_dropped_and_a_receipt_verified(arrive: Arrive, service: Service, chromium: Browser) -> None:
    service.post("/v1/datasets/customers/ask", {"expression": "churned"})
    page = arrive().goes("/datasets/customers")
    with page.expect_download() as found:
        page.click("text=Receipt (JSON)")
    receipt = Path(found.value.path()).read_text()
    anybody = Person.arrives(chromium, service.url)  # signed in or not
    page = anybody.goes("/verify")

    def drop(text: str) -> None:
        files = page.evaluate_handle(
            "text => { const all = new DataTransfer(); all.items.add(new File([text], 'receipt.json')); return all; }",
            text,
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": files})

    drop(receipt)
    expect(page.locator("#verified")).to_contain_text("The receipt verifies")
    forged = json.loads(receipt)
    forged["questions"][0]["low"] -= 0.01
    drop(json.dumps(forged))
    expect(page.locator("#verified")).to_contain_text("does NOT verify")
    drop("[]")
    expect(page.locator("[data-mistake=file]")).to_contain_text("receipt")
    anybody.leaves()


def test_the_steward_divides_charges_freezes_and_audits(arrive: Arrive, service: Service) -> None:
    for name in ("ann", "bob"):
        service.token(name)
    person = arrive("sam", "steward")
    page = person.goes("/datasets/churn/steward")
    sliders = page.locator("#shares input[type=range]")
    count = sliders.count()
    assert count >= 2
    for place in range(count):
        sliders.nth(place).fill("400")  # all of it, each
    taken = page.evaluate(
        "() => [...document.querySelectorAll('#shares input[type=number]')].map(e => Number(e.value) || 0)"
    )
    assert sum(taken) <= 400
    page.click("text=Divide")
    expect(page.locator("#rest")).to_contain_text("0 of 400")
    assert sum(service.get("/v1/datasets/churn/budget").json()["shares"].values()) == 400
    person.goes("/datasets/small/steward")
    page.fill("#why", "The <study> has ended.")
    page.click("button:has-text('Freeze')")
    expect(page.locator(".notice")).to_contain_text("The <study> has ended.")
    assert service.post("/v1/datasets/small/ask", {"expression": "age < 20"}).json()["code"] == "frozen"
    page.click("text=Answer again")
    expect(page.locator(".notice")).to_have_count(0)
    page.fill("#revealed", "a noisy mean in a report")
    page.select_option("#kind", "pure_dp")
    page.fill("#amount", "nothing")
    page.click("text=Record the charge")
    expect(page.get_by_role("alert")).to_contain_text("'nothing' is not a number")
    person.wrong.clear()  # a form that was refused is a page with its status
    page.click("text=Audit")
    page.click("text=Audit now")
    expect(page.locator("main")).to_contain_text("The receipt verifies")
    expect(page.locator("table.plain")).to_contain_text("opened")
    person.goes("/steward")
    page.fill("#name", "<img src=x onerror=alert(1)>")
    page.click("text=Make a token")
    made = page.locator("#made").inner_text()
    assert service.get("/v1/me", made).json()["name"] == "<img src=x onerror=alert(1)>"
    page.locator("tr", has_text="<img").get_by_role("button").click()
    expect(page.locator("tr", has_text="<img")).to_contain_text("revoked")
    assert service.get("/v1/me", made).status_code == 401


def test_reading_needs_no_script(arrive: Arrive, service: Service) -> None:
    person = arrive(java_script_enabled=False)
    page = person.goes("/datasets/customers")
    page.fill("#expression", "churned")
    page.click("#ask button.main")
    expect(page.locator("#answers article")).to_contain_text("guaranteed")
    page.click("text=History")
    expect(page.locator("svg.forest").first).to_be_visible()
    page.fill("#words", "churned")
    page.click("text=Show")
    expect(page.locator("table.history")).to_contain_text("churned")
    page.click("table.history tbody a >> nth=0")
    expect(page.locator("article")).to_contain_text("charged")
    # Nor do forms and files.
    person.goes("/datasets/customers")
    page.click("summary:has-text('A histogram')")
    page.select_option("#m-kind", "Quantile")
    page.fill("#m-expression", "amount")
    page.click("#measure button")
    expect(page.locator("#answers article")).to_contain_text("0.5 quantile")
    with page.expect_download() as found:
        page.click("text=Receipt (JSON)")
    held = pq.read_table(service.folder / "churn.parquet").to_pydict()
    person.goes("/datasets/churn/models")
    upload(page, "plain.csv", ("plain\n" + "".join(f"{x > 1}\n" for x in held["x0"])).encode())
    expect(page.locator("#answers article")).to_contain_text("of plain")
    upload(page, "few.csv", b"near\ntrue\n")
    expect(page.locator("[data-mistake=file]")).to_contain_text("rows")
    person.goes("/boards/closed")
    upload(page, "plain.csv", ("plain\n" + "".join(f"{x > 1}\n" for x in held["x0"])).encode())
    expect(page.locator("#answers article")).to_contain_text("plain: the only entry")
    person.goes("/verify")
    page.set_input_files("#receipt", found.value.path())
    page.click("#verify button")
    expect(page.locator("#verified")).to_contain_text("The receipt verifies")
    person.wrong.clear()  # a form that was refused is a page with its status


def test_statistics_and_claims(arrive: Arrive) -> None:
    page = arrive("dan").goes("/datasets/customers")
    page.click("summary:has-text('A histogram')")
    expect(page.locator("#m-level")).to_be_hidden()
    page.fill("#m-expression", "amount")
    page.fill("#m-edges", "0, 50, much")
    expect(page.locator("#measure [data-mistake=edges]")).to_contain_text("not a list such as")
    page.fill("#m-edges", "0, 50, 100, 500")
    expect(page.locator("#measure .price")).to_contain_text("Costs")
    page.click("#measure button")
    expect(page.locator("#answers article").first.locator("svg.forest").first).to_be_visible()
    page.select_option("#m-kind", "GroupMeans")
    page.fill("#m-expression", "churned")
    page.fill("#m-by", "contry")
    expect(page.locator("#measure [data-mistake=by]")).to_contain_text("did you mean country?")
    page.fill("#m-by", "country")  # its groups are in the data dictionary
    page.click("#measure button")
    expect(page.locator("#answers article").first).to_contain_text("CH")
    page.select_option("#m-kind", "claim")
    page.fill("#m-expression", "amount > 10")  # true of 0.9, 20 standard deviations above what is claimed
    page.fill("#m-from", "0.3")
    expect(page.locator("#measure .price")).to_contain_text("passes if the truth is about")
    page.click("#measure button")
    expect(page.locator("#answers article").first).to_contain_text("certified: amount > 10")


def test_stewards_reveal_rounds_and_hold_finals(arrive: Arrive, service: Service) -> None:
    page = arrive("sam", "steward").goes("/boards/league")
    for name, cut in {"low": -0.1, "high": 2.0}.items():
        held = pq.read_table(service.folder / "weeks.parquet").to_pydict()
        page.fill("#title", name)
        upload(page, "made.csv", ("p\n" + "".join(f"{x > cut}\n" for x in held["x"])).encode())
        expect(page.locator("#answers article")).to_contain_text(f"{name}: sealed")
    page.reload()
    expect(page.locator("main")).to_contain_text("2 sealed entries wait")
    page.click("text=Reveal the round")
    expect(page.locator("#verdict")).to_have_text("low is the best")
    page.goto(f"{service.url}/boards/last")
    held = pq.read_table(service.folder / "show.parquet").to_pydict()
    upload(page, "only.csv", ("p\n" + "".join(f"{x > 0}\n" for x in held["x"])).encode())
    expect(page.locator("#answers article")).to_contain_text("only: the only entry")
    page.reload()
    page.click("text=Hold the final")
    expect(page.locator("#verdict")).to_have_text("The final: only is the only entry")
    expect(page.locator("text=Hold the final")).to_have_count(0)


PLACES = {
    "sign in": "/sign-in",
    "datasets": "/",
    "dataset": "/datasets/customers",
    "rounds": "/datasets/visits",
    "history": "/datasets/customers/history",
    "answer": "/datasets/customers/answers/1",
    "models": "/datasets/churn/models",
    "steward": "/datasets/churn/steward",
    "audit": "/datasets/visits/audit",
    "tokens": "/steward",
    "verify": "/verify",
    "boards": "/boards",
    "board": "/boards/spring",
    "league": "/boards/league",
    "histogram": "/datasets/customers/answers/6",
}


def seen(service: Service) -> None:
    """Something to look at on every page, whichever tests ran before; all of it is free the second time."""
    churned = "churned AND tenure < 12 AND country = 'CH' AND amount BETWEEN 20 AND 120"
    for expression in ("churned", "tenure < 12", "country = 'CH'", "amount > 100", churned):
        service.post("/v1/datasets/customers/ask", {"expression": expression})
    edges = {"kind": "Histogram", "expression": "amount", "edges": [0, 25, 50, 100, 200, 500]}
    service.post("/v1/datasets/customers/measure", {"statistic": edges})
    service.post("/v1/datasets/visits/ask_many", {"questions": ["returned", "NOT returned"]})
    good = np.array(pq.read_table(service.folder / "show.parquet")["x"]) > 0
    chance = np.random.default_rng(4)
    models = {
        "logistic regression": 0.0,
        "random forest": 0.002,
        "boosted trees": 0.01,
        "last year's winner": 0.04,
        "two features": 0.25,
        "nearest neighbours": 0.3,
        "a coin": 0.5,
    }
    for place, (name, wrong) in enumerate(models.items()):
        made = {"predictions": {name: (good ^ (chance.random(len(good)) < wrong)).tolist()}}
        service.post("/v1/boards/spring/submit", made, service.token(["ann", "bob", "cleo"][place % 3]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens(arrive: Arrive, service: Service, scheme: str, tmp_path: Path) -> None:
    """Accessible in both colour schemes, and no page is wider than a phone; pictures are for people to look at.

    Without a place where they are kept, only those of a phone in daylight are made, to see that pages can be drawn.
    """
    kept = os.environ.get("AFRESH_SCREENS")
    folder = Path(kept or tmp_path) / scheme
    seen(service)
    person = arrive("sam", "steward", color_scheme=scheme)
    found = {}
    for name, path in PLACES.items():
        page = person.goes(path)
        for width, size in WIDTHS.items():
            page.set_viewport_size({"width": size, "height": 900})
            for scrolled in page.locator(".both:visible").all() if width == "phone" else ():
                assert scrolled.evaluate("each => each.scrollWidth <= each.clientWidth + 1"), name
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), (name, width)
            if kept or (width, scheme) == ("phone", "light"):
                page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)
        found[name] = person.findings()
    assert {name: each for name, each in found.items() if each} == {}


_MULTIPART = "multipart/form-data; boundary=x"
_FIELD = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
BROKEN = [  # in every way that a parser of forms could fail
    ("multipart/form-data", b"--x\r\n"),
    ("multipart/form-data; boundary=", b"--x\r\n"),
    (f"multipart/form-data; boundary={'x' * 300}", b"--x\r\n"),
    *[(_MULTIPART, content) for content in (b"", b"--y\r\n", b"--x\r\n", b"--x--", _FIELD + b"cut off")],
    (_MULTIPART, b"--x\r\nno header\r\n\r\na\r\n--x--\r\n"),
    (_MULTIPART, b"--x\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--x--\r\n"),
    (_MULTIPART, b"--x\r\n" + b"A: b\r\n" * 1000 + b"\r\na\r\n--x--\r\n"),
    (_MULTIPART, b"--x\r\nA: " + b"b" * 20_000 + b"\r\n\r\na\r\n--x--\r\n"),
    (_MULTIPART, (_FIELD + b"1\r\n") * 50 + b"--x--\r\n"),
    (_MULTIPART, _FIELD + b"1" * 2_000_000 + b"\r\n--x--\r\n"),
]


def test_forms_must_come_from_our_pages(service: Service) -> None:
    stranger = httpx.Client(base_url=service.url)
    assert (
        stranger.post("/sign-in", data={"token": service.token()}).status_code == 403
    )  # nobody is signed in by others
    assert stranger.get("/datasets/customers").headers["location"] == "/sign-in?next=/datasets/customers"
    client, other = session(service, service.token("sam", "steward")), session(service, service.token("sam", "steward"))
    before = service.get("/v1/datasets/customers/budget").json()["spent"]
    forms = {
        "/datasets/customers/ask": {"expression": "tenure < 99"},
        "/datasets/customers/price": {"expression": "tenure < 99"},
        "/datasets/customers/divide": {"name0": "ann", "share0": "1"},
        "/datasets/customers/charge": {"revealed": "x", "kind": "kl", "amount": "1"},
        "/datasets/customers/freeze": {"why": "x"},
        "/steward/tokens": {"name": "eve", "role": "steward"},
        "/boards/league/reveal": {"a": "b"},
        "/boards/last/final": {"a": "b"},
        "/sign-out": {"a": "b"},
    }
    for path, form in forms.items():
        for key in ({}, {"form_key": ""}, {"form_key": key_of(other)}, {"form_key": "é"}):
            assert client.post(path, data={**form, **key}).status_code == 403, path
    for path in ("/datasets/churn/score", "/boards/cup/submit"):
        for key in ({}, {"form_key": key_of(other)}):
            assert client.post(path, data=key, files={"file": ("a.csv", b"a\n1\n")}).status_code == 403, path
        assert client.post(f"{path}?file=a.csv", content=b"a\n1\n").status_code == 422
        for media, content in BROKEN:
            assert client.post(path, content=content, headers={"Content-Type": media}).status_code == 422, content[:60]
    assert client.post("/datasets/customers/ask", json={"expression": "tenure < 99"}).status_code == 422
    assert service.get("/v1/datasets/customers/budget").json()["spent"] == before
    assert client.get("/v1/datasets").status_code == 401  # a cookie opens pages, and no door of the API
    assert client.get("/").status_code == 200


def test_sessions_end_with_their_tokens_and_roles_hold(service: Service) -> None:
    token = service.tokens.new("gone")
    client = session(service, token)
    assert "customers" in client.get("/").text
    service.tokens.revoke("gone")
    assert client.get("/").status_code == 303
    short = session(service, service.tokens.new("short", days=0.1))
    (cookie,) = short.cookies.jar
    assert 8000 < (cookie.expires or 0) - time.time() <= 8640  # no longer than the token
    config = read_config(service.folder / "afresh.toml")
    with closing(store_of(config.state, config.ledger)) as store:
        store.run("UPDATE afresh_sessions SET expires = 1")
    assert short.get("/").status_code == 303
    narrow = session(service, service.token("nina", datasets=("churn",)))
    assert "customers" not in narrow.get("/").text
    assert narrow.get("/datasets/customers").status_code == 404
    viewer = session(service, service.token("vera", "viewer"))
    for path in ("/datasets/customers", "/datasets/customers/history", "/datasets/customers/receipt.html"):
        assert viewer.get(path).status_code == 200
    assert 'id="ask"' not in viewer.get("/datasets/customers").text
    form = {"form_key": key_of(viewer), "expression": "churned"}
    assert viewer.post("/datasets/customers/ask", data=form).status_code == 403
    for path in ("/steward", "/datasets/customers/steward", "/datasets/customers/audit"):
        assert viewer.get(path).status_code == 403
    for where in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        page = httpx.get(f"{service.url}/sign-in", params={"next": where}).text
        assert 'name="next" value="/"' in page
    for path in ("/nothing", "/datasets/customers/answers/0", "/datasets/customers/receipt.exe", "/static/../app.py"):
        found = viewer.get(path, headers={"Accept": "text/html"})
        assert (found.status_code, found.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
