"""Where rows live: the contract (`base`), how data are opened (`opening`), an engine a kind of database."""
