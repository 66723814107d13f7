"""What names rows by their content: one algorithm, computed where the rows live, equal wherever they are equal.

Numbers. A cell that questions see as missing (NULL, NaN, an infinity) has no hash. Others are a double or a text:

- a number is the double that questions see; true is 1 and false is 0;
- a day or a moment is the seconds since 1970, so that a day is its midnight;
- a text is itself. But where every text of a column spells a boolean, a number or an ISO time, as a CSV file would
  have to spell them, these are the column's values (`texts` has the grammar).

Hashes. A cell's hash is what Postgres calls `hashfloat8extended` and `hashtextextended`, with one seed: 64 bits by Bob
Jenkins's lookup3, on which Postgres stores partitions, so that it stays as it is. It is one cheap call in Postgres, and
a few passes of NumPy everywhere else (Spark's workers run NumPy too). A text of more than 252 bytes is hashed by its
MD5 in hexadecimal, as NumPy goes over all texts of a batch at once. All arithmetic stays within 64 bits with a sign.

Sums. A column's is the sum of the hashes of its cells, numbers rounded to single precision: order-free, and the same
after a cast. A row's hash shifts those of its cells to the right by the places of their columns, in order of names in
lower case, joins them by exclusive or, and multiplies the halves of the result with each other, so that no sum of rows
is linear. Of more than 24 columns, 24 at a time are joined so, and then the results in the same way. Sums are modulo
2^64.

The fingerprint seals the number of rows, the sum of the rows and the sum of every column by name with SHA-256. It sees
neither the order of rows or columns, nor how they are encoded, nor the case of names. Every row counts.

Chances, were the hashes random: other rows have equal sums with 2^-62, and other values in a column moreover equal sums
of it with 2^-64. Times are told apart to the microsecond from 1685 to 2255. Whoever knows the algorithm and writes the
rows can make two tables collide. Such tables share one budget, so nothing is gained by it.
"""

from afresh.engines.identity.records import ColumnDigest, ColumnSums, Identity, Sums, identify

__all__ = ["ColumnDigest", "ColumnSums", "Identity", "Sums", "identify"]
