"""Hardware in the loop: the table's tests on a real table, with what a bench has to move its parts.

`capabilities` is the table of what a test may need, `rig` the file that says what of it a bench has, `rigged` does it,
`plugin` joins them to pytest (--target, --port, --rig, --interactive).
"""
