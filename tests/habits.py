"""Which tests take long: what `make quick` leaves out, and what begins first."""

from pathlib import Path

HERE = Path(__file__).parent
LISTED = (HERE / "thorough.txt").read_text().splitlines()
THOROUGH = tuple(line for line in LISTED if line and not line.startswith("#"))
# Half a minute or more each.
LONGEST = ("test_examples", "server/test_pages", "engines/test_spark_cluster", "guard/test_attack", "test_benchmarks")
