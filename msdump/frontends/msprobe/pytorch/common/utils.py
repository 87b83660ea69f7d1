"""`msprobe.pytorch.common.utils`, where scripts find seed_all."""

from msdump.frontends.msprobe.seeding import seed_all as seed_all
