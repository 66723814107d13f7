"""Names rows by their content: one algorithm, computed where the rows live, with equal names for equal rows anywhere.

Values. A cell that questions see as missing (NULL, NaN, an infinity) has no hash. Any other is a double or a text:

- a number is the double that questions see; true is 1 and false is 0;
- a day or a moment is the seconds since 1970, so a day is its midnight;
- a text is itself. But if every text of a column spells a boolean, a number or an ISO time, as a CSV file would
  have to spell them, these are the column's values (`texts` has the grammar).

Hashes have 64 bits. Each takes a few cheap steps in Postgres and a few passes of NumPy everywhere else (Spark's workers
run NumPy too). All arithmetic on whole numbers stays within 64 signed bits, and arithmetic on doubles uses only sums,
products and quotients, which are rounded alike everywhere.

- A number is rounded to single precision, multiplied by a factor and rounded to a whole number of up to 60 bits, which
  is joined with a mask by exclusive or; its lowest 31 bits are multiplied by the 31 bits that begin 13 places higher
  (`numbers`). That is its hash in sums of columns. In hashes of rows, what rounding to single precision drops, as a
  share of the number in 54 binary digits, is joined to it in the same way, so these are exact. There is one factor for
  numbers below 2^-10, another up to 2^24 and a third above; the second is a whole number of 29 bits, so whole numbers
  need no doubles.
- A text, a time, and a number below 2^-44 or above 2^58 has the hash that Postgres calls `hashtextextended` or
  `hashfloat8extended`, with a fixed seed: Bob Jenkins's lookup3. Postgres stores partitions by it, so it will not
  change. A text of more than 252 bytes is hashed by its MD5 in hexadecimal, because NumPy goes over all texts of a
  block.

Sums. A column's sum is that of the hashes of its cells, with numbers rounded to single precision: it does not depend on
the order, and is the same after a cast. A row's hash shifts those of its cells to the right by the places of their
columns, in order of names in lower case, joins them by exclusive or, and multiplies the two halves of the result, so no
sum of rows is linear. With more than 24 columns, 24 at a time are joined like this, and then the results in the same
way. Sums are modulo 2^64.

The fingerprint seals the number of rows, the sum of the rows and the sum of every column by name with SHA-256. It does
not depend on the order of rows or columns, on how they are encoded, or on the case of names. Every row counts. If a
sum could not identify a column, because the column has few values or counts rows, files and frames also have a sum in
row order.

The sketch of a table's different rows shows whether two tables have most of them in common (`sketch`).

What it resists: accidents. If the hashes were random, other rows would have equal sums with probability 2^-62; hashes
of numbers are products of two 31-bit numbers, and in trials, though not by proof, sums of a few of them differed as
random ones would. Times are distinguished to the microsecond from 1685 to 2255. What it does not resist: anyone who
knows the algorithm and writes the rows can cheaply make two tables collide, as sums are linear. Such tables share one
budget and each other's answers, so nothing is gained by it. Rows cannot be recovered from what is published: a ledger
keys all digests with a secret.
"""

from afresh.engines.identity.records import ColumnDigest, ColumnSums, Identity, Sums, identify

__all__ = ["ColumnDigest", "ColumnSums", "Identity", "Sums", "identify"]
