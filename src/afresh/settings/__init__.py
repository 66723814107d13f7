"""Settings in TOML files: every mistake is reported with its line when a file is read, before any data is opened."""
