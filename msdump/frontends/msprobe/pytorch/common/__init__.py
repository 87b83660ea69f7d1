"""`msprobe.pytorch.common`."""

from msdump.frontends.msprobe.seeding import seed_all as seed_all
