"""What people look at in a browser: the table's display and the dealer's console, over one hub that owns the table."""
