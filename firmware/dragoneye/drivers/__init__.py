"""The only modules that import `machine`. Each can be swapped by the board's data."""
