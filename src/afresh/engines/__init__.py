"""Where rows live: the contract (`base`), how data are opened (`opening`), the embedded engine."""
