"""Property tests have no deadline: a slow machine is not a fault."""

from hypothesis import settings

settings.register_profile("table", deadline=None)
settings.load_profile("table")
