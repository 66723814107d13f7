"""What names rows by their content: one algorithm, computed where the rows live, equal wherever they are equal.

Words. A cell is a signed 64-bit word; a cell that questions see as missing (NULL, NaN, an infinity) has none.

- a number that is 0, or of a size from 2^-10 to below 2^53: its whole part plus 2^62 times the rest, which loses
  nothing; of another size: the bits of the double; true is 1 and false is 0;
- a day or a moment: microseconds since 1970, so that a day is its midnight;
- a text: the first 64 bits of its MD5. But where every text of a column spells a boolean, a number or an ISO time,
  as a CSV file would have to spell them, these are the column's values (`texts` has the grammar).

Hashes. `spread` multiplies the low 31 bits of a word and the others by constants and adds them; a text's word stays as
it is, and a missing cell counts as a constant in a row and as nothing in a column. `fold` multiplies the low 31 bits of
a spread word, or of what a row adds up to, by the others. All arithmetic stays within 64 bits with a sign, which
DuckDB, NumPy, Postgres and Spark compute alike and, because it has few operations, cheaply.

Sums. A column's is the sum of its folded words, with numbers rounded to single precision: order-free, and the same
after a cast. A row has two hashes: the low 31 bits of its spread words, and the others, are multiplied by keys that
belong to the column's name in lower case, joined by exclusive or, and folded. Both are summed over the rows. Sums are
modulo 2^64.

The fingerprint seals the number of rows, the two sums of the rows and the sum of every column by name with SHA-256. It
sees neither the order of rows or columns, nor how they are encoded, nor the case of names. Every row counts.

Chances, were the hashes random: other rows have equal sums with 2^-126, two texts equal words with 2^-64, and two
numbers equal spread words with 2^-60, of which their column's sum tells all but 2^-60, unless single precision cannot
hold them (above 1e38, below 1e-37). Whoever knows the algorithm and writes the rows can make two tables collide: solve
for numbers that give equal sums, or find two texts whose MD5 begin alike. Such tables share one budget, so nothing is
gained by it.
"""

from afresh.engines.identity.records import ColumnDigest, ColumnSums, Identity, Sums, identify

__all__ = ["ColumnDigest", "ColumnSums", "Identity", "Sums", "identify"]
