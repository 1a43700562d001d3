"""What every test here shares: no deadline, for a slow machine is not a defect."""

from hypothesis import settings

settings.register_profile("creonowd", deadline=None)
settings.load_profile("creonowd")
