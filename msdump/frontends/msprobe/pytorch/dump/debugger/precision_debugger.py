"""`msprobe.pytorch.dump.debugger.precision_debugger`, where scripts find PrecisionDebugger."""

from msdump.frontends.msprobe.debugger import PrecisionDebugger as PrecisionDebugger
from msdump.frontends.msprobe.debugger import module_dump as module_dump
from msdump.frontends.msprobe.debugger import module_dump_end as module_dump_end
