"""Facts from records, and claims compared with them: what is said is what the records say, or it is not supported."""

from ghost.agent.facts.proofs import UNCITED, Proof, Proofs, proofs_of
from ghost.agent.facts.recorded_facts import Fact
from ghost.agent.facts.second_walk import CHANGES_NO_NETWORK

__all__ = ["CHANGES_NO_NETWORK", "UNCITED", "Fact", "Proof", "Proofs", "proofs_of"]
