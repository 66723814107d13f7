"""The engine in this process: files and frames in a private, sealed DuckDB, with Polars where it is exact."""
