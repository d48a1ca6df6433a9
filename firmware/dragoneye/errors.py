"""The one error for input that a person can correct."""


class BadInput(ValueError):
    """Says what was wrong and what is allowed.

    `str(error)` is a whole sentence without a full stop, fit to be shown after "error: ". The command line ends with
    exit code 2, a batch line carries it in place of its result, and the device answers E_ARGS.
    """
