"""`tablectl`: talks to the table, keeps its record, deals the seats and scores the hands.

Imports go downward only: link -> device -> (rules, store) -> cli; `rules` is pure.
"""
