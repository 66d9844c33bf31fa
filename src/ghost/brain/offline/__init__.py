"""An investigator without a model: parses the symptom, queries Azure, decides with `ghost.net`, explains.

Calls the same tools as a model, with the same approvals, and executes nothing itself.
"""

from ghost.brain.offline.checks import CHECKS, Checks
from ghost.brain.offline.replay import OfflineBrain

__all__ = ["CHECKS", "Checks", "OfflineBrain"]
