"""What can be promised before any data is seen: the plan, the search for rows or questions, and what was requested."""
