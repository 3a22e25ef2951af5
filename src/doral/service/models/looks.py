"""What is looked at: reports, ledgers, facts, health."""

from __future__ import annotations

from pydantic import BaseModel, Field, create_model

from doral.live.page.facts import CampaignFacts
from doral.live.views.health import Health
from doral.live.views.report import Report
from doral.live.views.verify import Verification
from doral.service.models.base import Told
from doral.service.models.plain import plain_model

_AMOUNT = r"^-?[0-9]+(\.[0-9]+)?$"

ReportShown = plain_model(Report, leave_out=("read_served",), optional=("effects", "person"))
FactsShown = plain_model(CampaignFacts)
VerificationShown = plain_model(Verification)
HealthShown: type[BaseModel] = create_model(
    "HealthShown",
    __base__=plain_model(Health),
    __doc__="Whether the store can be used, how the clocks stand, and what somebody should look after.",
    is_well=(bool, Field(description="Nothing needs attention.")),
)


class LedgerShown(Told):
    """Where the budget is, to the last digit: spent + reserved + left = total. Decimals as text."""

    total: str = Field(pattern=_AMOUNT, examples=["1000.0"])
    spent: str = Field(pattern=_AMOUNT)
    reserved: str = Field(pattern=_AMOUNT)
    released: str = Field(pattern=_AMOUNT, description="Came back so far.")
    left: str = Field(pattern=_AMOUNT)
