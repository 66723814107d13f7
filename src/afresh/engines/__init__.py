"""Where rows live: the contract (`base`), how data is opened (`open`), and the engines.

`sql` is what questions mean in each dialect, `embedded` the private DuckDB over files and frames, `remote` tables of
Postgres and Spark, `identity` what names rows by their content.
"""
