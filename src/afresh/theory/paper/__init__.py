"""What maps the paper and runs in no mechanism of ours: results as functions, held to account by tests."""
