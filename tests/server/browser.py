"""A real browser on the pages of a service: whatever goes wrong in it fails the test that looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tools import needs

WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1280}


@contextmanager
def browser() -> Iterator[Browser]:
    path = needs.browser()
    assert path is not None, "no browser was found for the tests of pages: run `make needs`."  # they are not skipped
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


@cache
def _axe() -> str:
    return (Path(__file__).parent / "axe" / "axe.min.js").read_text()


@dataclass
class Person:
    """Somebody at a browser of their own, signed in."""

    url: str
    page: Page
    context: BrowserContext
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def arrives(cls, browser: Browser, url: str, **options: Any) -> Person:
        context = browser.new_context(**{"viewport": {"width": WIDTHS["desktop"], "height": 900}, **options})
        person = cls(url, context.new_page(), context)
        person.page.on("console", person._console)
        person.page.on("pageerror", lambda error: person.wrong.append(f"script: {error}"))
        person.page.on("request", person._request)
        person.page.set_default_timeout(20_000)
        return person

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):  # a breach of the Content-Security-Policy is one
            self.wrong.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url + "/", "data:")):
            self.wrong.append(f"elsewhere: {request.url}")

    def signs_in(self, token: str) -> Person:
        self.page.goto(self.url + "/")
        self.page.fill("#token", token)
        self.page.click("main button")
        self.page.wait_for_selector("text=Sign out")
        return self

    def goes(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def asks(self, expression: str) -> None:
        """Type a question and press Enter; what comes of it is for the caller to look at."""
        self.page.fill("#expression", expression)
        self.page.press("#expression", "Escape")
        self.page.click("#ask button")

    def findings(self) -> list[str]:
        """What axe-core finds on the page that is serious."""
        self.page.evaluate(_axe())
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def leaves(self) -> None:
        self.context.close()
        assert self.wrong == []
