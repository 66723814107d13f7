"""Random patterns for LIKE, and texts that nearly match them: for their meaning, and for the time they take."""

from __future__ import annotations

import random

_LETTERS = ("a", "b", "é", "😀", "\n", "\\", ".", "*", "(", "$", "'", "A", " ")


def pattern(dice: random.Random) -> str:
    """Some pieces, between which any text or so many characters may stand."""
    signs = (*dice.sample(_LETTERS, 2), "%", "%", "_")
    return "".join(dice.choice(signs) * dice.choice((1, 1, 1, 2)) for _ in range(dice.randint(0, 8)))


def text(dice: random.Random, like: str) -> str:
    """What the pattern matches, most often, with a letter more or less now and then."""
    made = "".join(
        "".join(dice.choices(like + "ab", k=dice.randint(0, 3)))
        if sign == "%"
        else dice.choice(_LETTERS)
        if sign == "_"
        else sign
        for sign in like
    )
    if made and dice.random() < 0.4:
        place = dice.randrange(len(made))
        made = made[:place] + dice.choice(("", dice.choice(_LETTERS))) + made[place + 1 :]
    return made


# a matcher that tries every place of every % would not be done with one of these in a year
SLOW = ["%" + "a%" * 20 + "b", "%" + "a_%" * 20 + "b", "%" + "_a%" * 20 + "bb", "a%" * 20 + "_b", "%a" * 25 + "_b%"]
SLOW += ["%" + "%".join(["aaaa_aaaa"] * 10) + "%b_", "%_" * 40 + "b", "%" + "a_" * 49 + "c%b"]
LONG = ["a" * 3000, "a" * 3000 + "c", "ab" * 1500 + "a", "", "b"]
