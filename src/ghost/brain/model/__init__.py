"""A brain that is a language model with tools. Needs the extra `models`; import this package late."""

from ghost.brain.model.model_brain import ModelBrain
from ghost.brain.model.system_prompt import SystemPrompt, system_prompt

__all__ = ["ModelBrain", "SystemPrompt", "system_prompt"]
