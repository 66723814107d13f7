"""Settings in TOML files: every mistake is told with its line when a file is read, before any data are opened."""
