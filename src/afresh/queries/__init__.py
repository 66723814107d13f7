"""What may be asked: typed, total expressions over one row, and the questions built from them."""
