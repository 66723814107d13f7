"""Questions as SQL: rendering for any dialect, the dialects, and what all engines that speak SQL have in common."""
