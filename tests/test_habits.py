"""What is said to take long is there."""

from habits import HERE, LONGEST, THOROUGH


def test_every_line_names_something() -> None:
    for line in (*THOROUGH, *LONGEST):
        place, _, test = line.partition("::")
        found = list(HERE.glob(f"{place}*"))
        assert found, line
        inherited = [path.read_text() for path in found[0].parent.glob("*.py")] if test else []
        assert not test or any(f" {test.rpartition('::')[2]}" in text for text in inherited), line
