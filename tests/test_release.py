"""What a release consists of: one version, licences, extras that exist, archives with everything in them."""

import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import afresh

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The files of a wheel and of a source distribution, as `make dist` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(source) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
        return {"wheel": set(opened.namelist()), "source": inside, "name": {wheel.name}}


def test_archives_have_everything(archives: dict[str, set[str]]) -> None:
    assert archives["name"] == {f"afresh-{afresh.__version__}-py3-none-any.whl"}
    files = subprocess.run(["git", "ls-files", "src/afresh"], cwd=ROOT, check=False, capture_output=True, text=True)
    for file in files.stdout.split():
        assert file.removeprefix("src/") in archives["wheel"], file
    assert "afresh/py.typed" in archives["wheel"]
    licences = {name.rpartition("/")[2] for name in archives["wheel"] if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", "LICENSE-flights.txt"}
    assert {"README.md", "CHANGELOG.md", "Makefile", "requirements/dev.txt", "tools/try_dist.py"} <= archives["source"]
    assert not any(name.startswith(("site/", ".venv", "demo/", "dist/")) for name in archives["source"])


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    for name in ("pyproject.toml", "CITATION.cff", "README.md", "mkdocs.yml"):
        assert not re.search(rf"\b{re.escape(afresh.__version__)}\b", (ROOT / name).read_text()), name


def test_every_extra_is_tried_and_named() -> None:
    assert {*runpy.run_path(str(ROOT / "tools" / "try_dist.py"))["USES"]} == {"", *PROJECT["optional-dependencies"]}
    readme = (ROOT / "README.md").read_text().partition("## Install")[2].partition("## ")[0]
    for extra in PROJECT["optional-dependencies"]:
        assert extra in readme, extra


def test_the_paper_is_cited() -> None:
    cited = (ROOT / "CITATION.cff").read_text()
    assert "Calibrating Noise to Variance in Adaptive Data Analysis" in cited
    assert "Steinke" in cited
