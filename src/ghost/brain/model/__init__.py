"""A brain that is a language model with tools. Needs the extra `models`; `ghost.brain.model_brain` imports it late."""
