"""What names rows by their content: one algorithm, computed where the rows live, equal wherever they are equal.

Words. A cell is a 64-bit word; a cell that questions see as missing (NULL, NaN, an infinity) has none.

- a number: its value if it is whole and below 2^53 in size, else the bits of the double; true is 1 and false is 0;
- a day or a moment: microseconds since 1970, so that a day is its midnight;
- a text: the first 63 bits of its MD5. But where every text of a column spells a boolean, a number or an ISO time,
  as a CSV file would have to spell them, these are the column's values (`texts` has the grammar).

Hashes. `mix` makes 63 bits of the word of a number or a time; those of a text are mixed already. All arithmetic is on
whole numbers below 2^63, which DuckDB, NumPy, Postgres and Spark compute alike. A missing cell counts 0.

Sums. A column's is the sum of the hashes of its cells, with numbers rounded to single precision: order-free, and
the same after a cast. A row's hash is made of the exact hashes of its cells, each multiplied by a key that belongs to
the column's name in lower case; the rows' hashes are summed. Sums are modulo 2^64.

The fingerprint seals the number of rows, the sum of the rows and the sum of every column by name with SHA-256. It
sees neither the order of rows or columns, nor how they are encoded, nor the case of names. It resists accidents and
casual edits. Whoever controls the rows and knows the algorithm can make two tables collide, and gains nothing by it:
such tables share one budget.
"""

from afresh.engines.identity.records import ColumnDigest, ColumnSums, Identity, Sums, identify

__all__ = ["ColumnDigest", "ColumnSums", "Identity", "Sums", "identify"]
