"""Pai gow tiles, cards, seats and banks as pure functions and data: no I/O but reading their own data files."""
