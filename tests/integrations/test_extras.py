"""What is missing says which extra brings it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("module", "package", "extra"), [("sklearn", "scikit-learn", "sklearn"), ("optuna",) * 3])
def test_missing_extras_are_named(module: str, package: str, extra: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import afresh.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"MissingExtra: this needs {package}; install it with: pip install 'afresh[{extra}]'" in done.stderr
    assert done.returncode == 1
