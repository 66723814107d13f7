"""`import afresh` against `import numpy, scipy.special, duckdb`, fresh processes, taken in turns."""

import statistics
import subprocess
import sys
import time

STATEMENTS = {
    "import numpy, scipy.special, duckdb": "import numpy, scipy.special, duckdb",
    "import afresh": "import afresh",
}


def main(rounds: int = 15) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds + 1):
        for name, statement in STATEMENTS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(taken[1:]) for name, taken in seconds.items()}  # the first warms the disk
    base = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"  {name:<40} {1000 * median:7.0f} ms   ratio {median / base:.2f}")


if __name__ == "__main__":
    main()
