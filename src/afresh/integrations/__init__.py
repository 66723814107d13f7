"""Guards inside other packages; each needs its extra."""
