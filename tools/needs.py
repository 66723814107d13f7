"""What the tests need besides packages of Python: each is found, or brought, or there is a line that says how.

python tools/needs.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@dataclass(frozen=True)
class Need:
    """A program: where it is if it is there, a command that downloads it if there is one, and the system's package."""

    name: str
    find: Callable[[], str | None]
    package: str
    remedy: str
    download: tuple[str, ...] = ()


def browser() -> str | None:
    """The path of a browser that runs: the one that is named, the system's, or Playwright's."""
    named = os.environ.get("AFRESH_BROWSER")
    if named:
        if not _runs(named):
            sys.exit(
                f"AFRESH_BROWSER is {named!r}, which does not run; name a Chromium or Chrome that does, or unset it."
            )
        return named
    return next(filter(_runs, filter(None, map(shutil.which, BROWSERS))), None) or _of_playwright()


def _of_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if _runs(path) else None


def _runs(path: str) -> bool:
    """Whether it starts: a download may lack libraries of the system, and Ubuntu's package is only a hint at a snap."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


NEEDS = (
    Need(
        "a browser",
        browser,
        "chromium",
        "install Chromium or Chrome, or set AFRESH_BROWSER to the path of one",
        (sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"),
    ),
)


def main() -> None:
    """Bring what is missing, and end with the remedy where that fails."""
    for need in NEEDS:
        found = need.find()
        for way in (need.download, _packaged(need.package)):
            if found is None and way:
                print(f"The tests need {need.name}; bringing one with: {' '.join(way)}", flush=True)
                subprocess.run(way, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                found = need.find()
        if found is None:
            sys.exit(f"The tests need {need.name}, and none could be brought: {need.remedy}, then try again.")
        print(f"The tests use {found}.", flush=True)


def _packaged(package: str) -> tuple[str, ...]:
    """The command that installs a package of the system, if this user may."""
    if shutil.which("apt-get") is None or (os.geteuid() != 0 and shutil.which("sudo") is None):
        return ()
    install = f"apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {package}"
    return (*(() if os.geteuid() == 0 else ("sudo", "-n")), "sh", "-c", install)


if __name__ == "__main__":
    main()
