"""Rules as pure functions over data: no I/O but reading a rule pack's file, no clock, no randomness."""
