"""The paper's results as functions, checked by tests; none of our mechanisms uses them."""
