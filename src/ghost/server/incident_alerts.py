"""An alert as the symptom of an investigation: Azure Monitor's common alert schema, and a plain form.

Source: learn.microsoft.com/azure/azure-monitor/alerts/alerts-common-schema. Its texts are external: they are data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from ghost.server.request_limits import ID_CHARACTERS, SYMPTOM_CHARACTERS
from ghost.text import one_line

MAX_TARGETS: Final = 5
ALERT_ID_CHARACTERS: Final = 400

Line = Annotated[str, Field(max_length=SYMPTOM_CHARACTERS)]


class Essentials(BaseModel):
    """The fields of every common alert that say what it is about."""

    model_config = ConfigDict(extra="ignore")

    alertId: str = Field(min_length=1, max_length=ALERT_ID_CHARACTERS)  # noqa: N815 - Azure's name
    alertRule: Line = ""  # noqa: N815
    description: Line | None = None
    monitorCondition: Literal["Fired", "Resolved"] = "Fired"  # noqa: N815
    alertTargetIDs: list[Line] = Field(default_factory=list, max_length=100)  # noqa: N815
    configurationItems: list[Line] = Field(default_factory=list, max_length=100)  # noqa: N815


class CommonAlertData(BaseModel):
    model_config = ConfigDict(extra="ignore")

    essentials: Essentials
    alertContext: dict[str, Any] | None = None  # noqa: N815


class CommonAlert(BaseModel):
    """An alert of Azure Monitor, as an action group posts it."""

    model_config = ConfigDict(extra="ignore")

    schemaId: Literal["azureMonitorCommonAlertSchema"]  # noqa: N815
    data: CommonAlertData


class PlainIncident(BaseModel):
    """An alert of any other source."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"id": "4711", "symptom": "web-vm ..."}]})

    id: str = Field(min_length=1, max_length=ID_CHARACTERS, description="The same for each repetition.")
    symptom: str = Field(min_length=1, max_length=SYMPTOM_CHARACTERS, pattern=r"\S")


def _form_of(body: Any) -> str:
    return "alert" if isinstance(body, CommonAlert) or (isinstance(body, dict) and "schemaId" in body) else "plain"


Alert = Annotated[
    Annotated[CommonAlert, Tag("alert")] | Annotated[PlainIncident, Tag("plain")], Discriminator(_form_of)
]
"""What is wrong with a body is told of the form that it has."""


@dataclass(frozen=True)
class Incident:
    alert_id: str
    symptom: str
    is_over: bool = False


def incident_of(alert: CommonAlert | PlainIncident) -> Incident:
    if isinstance(alert, PlainIncident):
        return Incident(alert.id, one_line(alert.symptom, SYMPTOM_CHARACTERS))
    about = alert.data.essentials
    names = [target.rstrip("/").rpartition("/")[2] for target in about.alertTargetIDs]
    known = dict.fromkeys(name for name in (*about.configurationItems, *names) if name)
    said = "; ".join(dict.fromkeys(filter(None, (about.description, about.alertRule)))) or "an alert without words"
    unsaid = [name for name in list(known)[:MAX_TARGETS] if name.lower() not in said.lower()]
    symptom = f"{said} ({', '.join(unsaid)})" if unsaid else said
    return Incident(about.alertId, one_line(symptom, SYMPTOM_CHARACTERS), about.monitorCondition == "Resolved")
