"""Chooses the brain of an investigation, and says what a model elsewhere will be sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ghost.agent import Session, Workspace, load_session, tool_declarations
from ghost.brain import Brain, OfflineBrain, OpenedBrain, model_brain
from ghost.config import Settings
from ghost.errors import RecordError, SessionError, UsageError
from ghost.hosts import is_loopback
from ghost.providers import VENDORS, chat_server
from ghost.records import read_json, write_json
from ghost.redaction import Placeholders, for_outside

BRAINS = ("auto", "offline", *VENDORS)
FIRST_USE = (
    "First use of {name} in this workspace. It is sent the symptom, hints from memory, commands and results, after "
    "redaction (secrets become markers or placeholders); names and addresses as they are, unless --private."
)


@dataclass(frozen=True)
class Wish:
    """What the command line asks for; None for what it leaves open."""

    brain: str | None = None
    model: str | None = None
    max_cost: float | None = None
    resume: str | None = None


class Outgoing:
    """What is done to each text before a model gets it: placeholders of private mode, and for a model elsewhere of
    secrets and random tokens. A text is sent the same each time, so that a provider's cache of it holds.
    """

    def __init__(self, placeholders: Placeholders | None) -> None:
        self.placeholders = placeholders
        """Shared with the shell, which alone restores them. None for a model on this machine."""
        self.hide: Callable[[str], str] = str
        """The shell's, in private mode."""
        self._sent: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if text not in self._sent:
            hidden = self.hide(text)
            self._sent[text] = for_outside(hidden, self.placeholders) if self.placeholders is not None else hidden
        return self._sent[text]


@dataclass(frozen=True)
class ChosenBrain:
    brain: Brain
    outgoing: Outgoing = field(default_factory=lambda: Outgoing(None))
    notes: tuple[str, ...] = ()
    """What the engineer is told about the choice."""
    told: Callable[[], None] = lambda: None
    """To be called once the notes were shown."""


def choose_brain(wish: Wish, settings: Settings, workspace: Workspace, prompt: str | None = None) -> ChosenBrain:
    """Return the brain that is wished for, else that of the session to resume, else that of `GHOST_BRAIN`. With a
    `prompt` a model has that one instead of an investigation's, and no tools.

    Raises `UsageError` for an unknown one and `ConfigurationError` if its key, model or library is missing.
    """
    recorded = _recorded(workspace, wish.resume)
    recorded_provider, _, recorded_model = (
        recorded.model.partition(" at ")[0].partition("/") if recorded else ("", "", "")
    )
    wanted = wish.brain if wish.brain not in (None, "auto") else recorded_provider or settings.brain
    if wanted not in BRAINS:
        raise UsageError(f"there is no brain {wanted!r}: choose one of {', '.join(BRAINS)}")
    provider = ("gemini" if settings.gemini_api_key else "offline") if wanted == "auto" else wanted
    if provider == "offline":
        if wish.model or wish.max_cost:
            raise UsageError("--model and --max-cost need a model: name its provider with --brain")
        return ChosenBrain(OfflineBrain(), notes=_differences(recorded, OfflineBrain()))
    model = wish.model or (recorded_model if provider == recorded_provider else None)
    chosen = _model_brain(provider, model, wish.max_cost or settings.max_cost, settings, workspace, prompt)
    return replace(chosen, notes=(*_differences(recorded, chosen.brain), *chosen.notes))


def _model_brain(
    provider: str,
    model: str | None,
    max_cost: float | None,
    settings: Settings,
    workspace: Workspace,
    prompt: str | None,
) -> ChosenBrain:
    server = chat_server(settings, provider, model)
    outgoing = Outgoing(None if is_loopback(server.host) else Placeholders())
    brain = model_brain(
        server,
        tool_declarations(settings.context_tokens) if prompt is None else (),
        prompt=prompt,
        outside=outgoing,
        context_tokens=settings.context_tokens,
        max_output_tokens=settings.max_output_tokens,
        max_cost=max_cost,
    )
    brain = brain if prompt is not None else OpenedBrain(brain)
    used_file = workspace.audit_dir / "remote_models.json"
    used = _used(used_file)
    if outgoing.placeholders is None or brain.name in used:
        return ChosenBrain(brain, outgoing)
    note = FIRST_USE.format(name=brain.name)
    return ChosenBrain(brain, outgoing, (note,), lambda: write_json(used_file, [*used, brain.name]))


def _recorded(workspace: Workspace, resume: str | None) -> Session | None:
    if resume is None:
        return None
    try:
        return load_session(workspace.find(resume))[0]
    except SessionError:  # the opening of the session says what is wrong with it
        return None


def _differences(recorded: Session | None, brain: Brain) -> tuple[str, ...]:
    if recorded is None or recorded.completion is not None:
        return ()
    if recorded.model != brain.name:
        return (f"This session began with {recorded.model}; it continues with {brain.name}.",)
    if recorded.prompt_sha256 != brain.prompt_hash:
        return ("The system prompt has changed since this session began.",)
    return ()


def _used(used_file: Path) -> list[str]:
    """Return the models elsewhere, with their servers, whose first use in this workspace was told."""
    try:
        used = read_json(used_file)
    except (FileNotFoundError, RecordError):
        return []
    return used if isinstance(used, list) else []
