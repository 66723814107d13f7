"""Make the items of the example: python examples/evaluation/items.py [FOLDER]"""

import json
import os
import random
import sys
from pathlib import Path

ITEMS = 6000


def main(folder: Path) -> None:
    chance, path = random.Random(0), folder / "items.jsonl"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        for i in range(ITEMS):
            out.write(json.dumps({"id": f"q{i}", "words": chance.randint(1, 40)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent))
