"""Run every benchmark and print its table: python -m benchmarks, or python -m benchmarks small questions"""

import importlib
import sys

ALL = (
    *("import_time", "planning", "small", "questions", "many", "identity", "opening", "postgres", "memory", "scoring"),
    *("chains", "processes"),
)

for name in sys.argv[1:] or ALL:
    module = importlib.import_module(f"benchmarks.{name}")
    print(module.__doc__)
    module.main()
    print(flush=True)
