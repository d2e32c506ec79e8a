"""What an index will cost before it is built: disk, memory and time for so many words.

Owns the constants that were measured once (measured.json, with the command that made it) and the arithmetic
that takes them to other sizes. Reads no collection and writes nothing.
"""

from denspi.plan.estimate import Load, Plan, estimate
from denspi.plan.measured import Measured, measured_constants
from denspi.plan.rate import Encoding, measure_encoding
from denspi.plan.request import plan_index

__all__ = [
    "Encoding",
    "Load",
    "Measured",
    "Plan",
    "estimate",
    "measure_encoding",
    "measured_constants",
    "plan_index",
]
