"""Guards inside other packages; each needs an optional extra."""
