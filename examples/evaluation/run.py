"""The steward's evaluator: runs a candidate on items, and writes a score for every one.

A real one would call a model. Here a candidate is a file with one number, how many words it can handle: it solves items
that are no longer. It needs nothing but Python.
"""

import json
import sys
from pathlib import Path


def main(candidate: str, items: str, results: str) -> None:
    most = float(Path(candidate).read_text())
    with open(items) as lines, open(results, "w") as out:
        for line in lines:
            item = json.loads(line)
            out.write(json.dumps({"id": item["id"], "score": int(item["words"] <= most)}) + "\n")
    print(f"handles up to {most:g} words")


if __name__ == "__main__":
    main(*sys.argv[1:])
