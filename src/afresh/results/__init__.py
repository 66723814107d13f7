"""What people read: answers and budgets, prices, transcripts, and the rules by which numbers follow from answers.

Everything here is a function of recorded numbers and public constants. `show` is how all of it looks.
"""
