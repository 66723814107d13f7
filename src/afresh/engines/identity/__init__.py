"""What names rows by their content: one algorithm, computed where the rows live, equal wherever they are equal.

Numbers. A cell that questions see as missing (NULL, NaN, an infinity) has no hash. Others are a double or a text:

- a number is the double that questions see; true is 1 and false is 0;
- a day or a moment is the seconds since 1970, so that a day is its midnight;
- a text is itself. But where every text of a column spells a boolean, a number or an ISO time, as a CSV file would
  have to spell them, these are the column's values (`texts` has the grammar).

Hashes of 64 bits, each a few cheap steps in Postgres and a few passes of NumPy everywhere else (Spark's workers run
NumPy too). All arithmetic of whole numbers stays within 64 bits with a sign, and that of doubles is sums, products and
quotients, which are rounded alike everywhere.

- A number is rounded to single precision, multiplied by a factor and rounded to a whole number of up to 60 bits, with a
  mask over it; its lowest 31 bits are multiplied with the 31 that begin 13 places higher (`numbers`). That is its hash
  in sums of columns. What single precision leaves of it, as a share of the number in 54 binary digits, is
  laid over it in hashes of rows, so that these are exact. The factor is one for numbers below 2^-10, another up to 2^24
  and a third above; the second is whole and of 29 bits, so that whole numbers need no doubles.
- A text, a time, and a number below 2^-44 or above 2^58 has the hash that Postgres calls `hashtextextended` or
  `hashfloat8extended`, with one seed: Bob Jenkins's lookup3, on which Postgres stores partitions, so that it stays as
  it is. A text of more than 252 bytes is hashed by its MD5 in hexadecimal, as NumPy goes over all texts of a block.

Sums. A column's is the sum of the hashes of its cells, numbers rounded to single precision: order-free, and the same
after a cast. A row's hash shifts those of its cells to the right by the places of their columns, in order of names in
lower case, joins them by exclusive or, and multiplies the halves of the result with each other, so that no sum of rows
is linear. Of more than 24 columns, 24 at a time are joined so, and then the results in the same way. Sums are modulo
2^64.

The fingerprint seals the number of rows, the sum of the rows and the sum of every column by name with SHA-256. It sees
neither the order of rows or columns, nor how they are encoded, nor the case of names. Every row counts. Where a sum
would not tell a column again, as it has few values or counts rows, files and frames have one in row order as well.

What it resists: accidents. Were the hashes random, other rows would have equal sums with a chance of 2^-62; those of
numbers are products of two numbers of 31 bits, and sums of a few of them were tried, not proved, to be as different as
random ones. Times are told apart to the microsecond from 1685 to 2255. What it does not resist: whoever knows the
algorithm and writes the rows can make two tables collide, cheaply, as sums are linear. Such tables share one budget and
one another's answers, so nothing is gained by it. Rows cannot be read off what is published: a ledger keys all digests
with a secret.
"""

from afresh.engines.identity.records import ColumnDigest, ColumnSums, Identity, Sums, identify

__all__ = ["ColumnDigest", "ColumnSums", "Identity", "Sums", "identify"]
