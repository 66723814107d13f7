"""What people read: answers, budgets, prices, transcripts, and the rules that derive numbers from answers.

Everything here is a function of recorded numbers and public constants. `show` decides how all of it looks.
"""
