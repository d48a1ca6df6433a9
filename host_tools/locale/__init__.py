"""The catalogues of what a person reads; `python -m host_tools.locale` brings them up to date with the sources."""
