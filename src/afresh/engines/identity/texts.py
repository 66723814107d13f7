"""Decides when a column's texts spell booleans, numbers or times, as in a CSV file, which can hold nothing but text.

A column's texts are read as the first of these whose grammar they all satisfy; a zero followed by a digit is not a
number, so codes such as 007 stay texts.
"""

from __future__ import annotations

BOOLEAN = "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"
NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?"
_LEAP = "([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29"
_MONTHS = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
_DAY = f"({_LEAP}|[1-9][0-9]{{3}}-({_MONTHS}))"  # only days that exist: no engine may fail on others
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
TIME = rf"{_DAY}([ T]{_CLOCK}(Z|\+00(:?00)?)?)?"

GRAMMARS = {"boolean": BOOLEAN, "number": NUMBER, "time": TIME}
SAMPLE = 2000  # rows that rule grammars out before all rows are read for the remaining ones
LONGEST = 40  # characters; a longer text spells none of these
