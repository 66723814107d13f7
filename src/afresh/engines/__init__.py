"""Where rows live: the contract (`base`), how data is opened (`open`), and the engines.

`sql` says what questions mean in each dialect, `embedded` is the private DuckDB over files and frames, `remote` reads
tables in Postgres and Spark, and `identity` names rows by their content.
"""
