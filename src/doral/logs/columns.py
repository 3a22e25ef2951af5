"""What names of columns say: roles by name, in English, German, French and Spanish, and units of time and money."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from doral.errors import InvalidValue
from doral.logs.log import Assumption
from doral.logs.values import CURRENCIES, SIGNS

# Names in lower case with single underscores, in tiers: one of the first goes before all of the next.
KNOWN: dict[str, tuple[tuple[str, ...], ...]] = {
    "arm": (
        ("arm", "arm_name", "treatment", "action", "variant", "treatment_arm", "chosen_arm", "behandlung", "variante",
         "massnahme", "traitement", "bras", "tratamiento", "brazo", "accion"),
        ("intervention", "assignment", "assigned_arm", "offer", "condition", "experiment_group", "test_group", "w",
         "angebot", "offre", "oferta"),
    ),
    "reward": (
        ("reward", "outcome"),
        ("response", "converted", "conversion", "result", "success", "y", "clicked", "click", "test_result",
         "positive", "ergebnis", "erfolg", "resultat", "succes", "resultado", "exito"),
    ),
    "answered": (
        ("answered_at", "answer_at", "answer_time", "answered_time", "returned_at", "responded_at"),
        ("result_at", "result_time", "result_date", "resolved_at", "outcome_at", "outcome_time", "outcome_date"),
        ("answered", "response_at", "converted_at", "conversion_time", "reported_at", "reported_date", "feedback_at"),
    ),
    "delay": (
        ("delay", "answer_delay"),
        ("latency", "turnaround", "turnaround_time", "tat", "time_to_answer", "lag", "wartezeit", "verzogerung",
         "verzoegerung", "delai", "retraso", "demora"),
    ),
    "time": (
        ("decided_at", "decision_time", "time", "timestamp", "arrived_at", "arrival_time", "assigned_at", "datetime"),
        ("date", "created_at", "created", "ts", "sent_at", "event_time", "day", "collected_date", "collected_at"),
        ("round", "step", "t"),
    ),
    "observed_until": (("observed_until", "watched_until", "censored_at", "followed_until", "observed_to"),),
    "probability": (
        ("probability", "propensity", "pscore", "propensity_score", "action_prob"),
        ("prob", "p", "ps", "wahrscheinlichkeit", "probabilite", "probabilidad"),
    ),
    "cost": (
        ("cost", "list_price", "unit_cost", "kosten", "stuckkosten", "cout", "coste", "costo"),
        ("price", "fee", "preis", "gebuhr", "gebuehr", "prix", "tarif", "precio", "tarifa"),
    ),
    # Not "spend": in logs of shops that is what customers spent.
    "paid": (("paid", "actual_cost", "amount_paid"), ("charged",)),
    "key": (
        ("id", "decision_id", "request_id", "row_id", "event_id", "impression_id", "order_id"),
        ("key", "uuid"),
        ("user_id", "userid", "customer_id", "patient_id", "subject_id", "person_id", "client_id", "visitor_id",
         "kunden_id", "kundennummer", "id_client", "id_cliente"),
    ),
}  # fmt: skip
CONTEXTS = (
    ("context", "contexts"),
    ("stratum", "strata", "segment", "cohort", "group", "customer_segment", "gruppe", "groupe", "grupo"),
    ("region",),
)
_OF_PEOPLE = KNOWN["key"][-1]  # who comes twice is no duplicate


def _words(pattern: str) -> re.Pattern[str]:
    """Beginnings of the words of a name; those after the bar may also be inside of a compound."""
    begin, _, inside = pattern.partition(" | ")
    inner = f"|{'|'.join(inside.split())}" if inside else ""
    return re.compile(rf"(?:^|_)(?:{'|'.join(begin.split())}){inner}")


# What words in names hint at. Hints decide nothing that the data contradict.
HINTS: dict[str, re.Pattern[str]] = {
    "arrival": _words(
        "decid arriv sent send assign contact creat collect request offered mailed shown impression issued begin start"
        " gesendet erstellt angelegt anfrage kontakt verschickt envoi envoye cree creation debut envi cread solicitud"
        " inicio | versand versend kontakt"
    ),
    "answer": _words(
        "answer respon return result resolv outcome complet convert conversion report feedback repl clos finish"
        " end(?:ed)?(?:_|$) purchas bought paid booked booking signed redeem click open(?:ed)?(?:_|$) gebucht gekauft"
        " bestell kauf buchung erledigt abgeschlossen reponse repondu retour achat achete reserv cloture"
        " termin(?:e|ado) respuesta devuelt compra cerrad finaliz | antwort antwortet ergebnis ruckmeld rueckmeld"
        " rucklauf ruecklauf abschluss resultat resultado"
    ),
    # Times that are about something else than this decision.
    "other_time": _words(
        "birth born dob geburt naissance nacim signup sign_up regist updated modified deleted export loaded ingest"
        " insert valid expir due deadline last_ first_ cancel etl aktualisiert geandert storn maj mis_a actualiz"
    ),
    "any_time": _words(
        "time timestamp datetime date ts(?:_|$) day epoch when moment zeit heure hora fecha jour dia | datum"
    ),
    "outcome": _words(
        "reward outcome respon convert conversion result success click bought buy purchas booked booking sales? sold"
        " signed redeem complet renew enrol subscrib accept opened visit revenue spend spent profit positiv attended"
        " answer repl ergebnis erfolg gekauft gebucht bestellt umsatz ertrag konver abgeschlossen teilgenommen reponse"
        " repondu resultat succes achat achete reserv chiffre gain inscrit respuesta respond resultado exito compra"
        " comprad venta ingreso | antwort"
    ),
    "arm": _words(
        "arm treatment action variant channel campaign messag creative option program method kit intervention"
        " promotion assigned mailing test_type massnahme aktion behandlung kanal angebot kampagne versuch bras"
        " traitement canal offre offer campagne brazo tratamiento accion oferta campana tratamento trattamento campanha"
    ),
    "weak_arm": _words("group segment cohort type product gruppe groupe grupo"),
    "context": _words(
        "context age(?:_|$) gender sex region country city town zip postal plz device platform os(?:_|$) browser"
        " language locale income education customer_type newbie new_ is_new tenure alter(?:s|_|$) geschlecht"
        " land(?:_|$) stadt ort(?:_|$) sprache pays ville langue tranche departement pais ciudad sexo edad idioma"
        " provincia severity history recency patient prior previous past weekday month monat mois mes(?:_|$) hour"
        " | kundenart kundentyp altersgruppe bundesland _before"
    ),
    "cost": _words(
        "cost price fee expense kosten preis gebuhr gebuehr aufwand ausgabe cout prix frais depense tarif coste costo"
        " precio gasto tarifa commission provision | kosten preis"
    ),
    # Sums over several decisions.
    "count": _words(
        "num n n_of nb count total sum anzahl summe nombre cantidad numero impressions clicks conversions visits orders"
        " purchases sessions views installs leads users sends signups klicks besuche bestellungen clics ventes compras"
    ),
    "average": _words(
        "rate ratio avg average mean share quote anteil taux tasa media | _rate _ratio _avg _mean _pct quote"
    ),
    "delay": _words("delay latency turnaround lag wait wartezeit verzog delai attente retraso demora espera"),
    "identifier": _words(
        "ids?(?:_|$) uuid guid key(?:_|$) no$ nr$ num$ number code index row(?:_|$) hash numero ref(?:_|$) | nummer _id"
    ),
}
# Yes where there is an answer, whatever it says.
ANSWER_FLAGS = (
    "answered", "is_answered", "has_answer", "responded", "has_response", "returned", "beantwortet", "repondu",
    "respondido",
)  # fmt: skip
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sekunden", "secondes", "segundos"), "seconds"),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "minuten", "minutos"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "stunden", "heures", "horas"), "hours"),
    **dict.fromkeys(("d", "day", "days", "tage", "tagen", "jours", "dias"), "days"),
    **dict.fromkeys(("w", "week", "weeks", "wochen", "semaines", "semanas"), "weeks"),
    **dict.fromkeys(("ms", "milliseconds", "millisecond"), "milliseconds"),
    **dict.fromkeys(("round", "rounds"), "rounds"),
}
UNIT_NAMES = ("milliseconds", "seconds", "minutes", "hours", "days", "weeks", "rounds")
EXPORTED = {"decided_at", "state", "context", "arm", "actual_cost", "reward", "answered_at", "probability"}
SIMULATED = {"scenario", "policy", "run", "round", "context", "arm"}
Chosen: TypeAlias = str | Literal[False] | None  # a column, none at all, or whichever it seems to be


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The columns of a log; `units` are those that their names say."""

    columns: Mapping[str, str]
    context: tuple[str, ...]
    guessed: tuple[str, ...] = ()
    units: Mapping[str, str]
    is_export: bool = False  # written by `campaign.export`
    is_simulated: bool = False  # of `SimulationResult.decisions`
    unused: tuple[str, ...] = ()
    arm_columns: tuple[str, ...] = ()  # where every arm has a column of its own
    assumptions: tuple[Assumption, ...] = ()
    proposed: tuple[str, ...] = ()  # columns that could be a context
    time_of_day: str | None = None  # a column beside the days of arrival

    def get(self, role: str) -> str | None:
        return self.columns.get(role)

    @property
    def key_is_of_people(self) -> bool:
        """Whether the key was guessed and names people, who may come more than once."""
        return "key" in self.guessed and plain(self.columns["key"]) in _OF_PEOPLE

    def listed(self) -> tuple[tuple[str, str], ...]:
        of_arms = [("arm", name) for name in self.arm_columns]
        plain_ones = [(role, name) for role, name in self.columns.items() if role != "arm" or not self.arm_columns]
        return (*plain_ones, *of_arms, *(("context", name) for name in self.context))


def plain(name: str) -> str:
    """In lower case, without accents, with single underscores.

    >>> plain("createdAt"), plain("Delay (days)"), plain("User ID"), plain("Rückmeldung")
    ('created_at', 'delay_days', 'user_id', 'ruckmeldung')
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:200])
    bare = "".join(one for one in unicodedata.normalize("NFKD", split) if not unicodedata.combining(one))
    return re.sub(r"[^a-z0-9]+", "_", bare.lower().replace("ß", "ss")).strip("_")


def hints_at(what: str, name: str) -> bool:
    """Whether the name has a word of this meaning.

    >>> hints_at("answer", "date_réponse"), hints_at("cost", "Versandkosten"), hints_at("context", "message")
    (True, True, False)
    """
    return HINTS[what].search(plain(name)) is not None


def tier_of(role: str, name: str) -> int | None:
    """The tier of known names of a role, 0 for the plainest; a unit at its end does not count."""
    said = _without_currency(plain(name))
    for tier, names in enumerate(KNOWN[role]):
        if said in names or (role in ("time", "delay") and _without_unit(said) in names):
            return tier
    return None


def unit_in(name: str) -> str | None:
    """The unit of time that a name says.

    >>> unit_in("delay_h"), unit_in("Delay (days)"), unit_in("days_to_reply"), unit_in("delay"), unit_in("round")
    ('hours', 'days', 'days', None, 'rounds')
    """
    words = plain(name).split("_")
    if len(words) == 1:
        return _UNITS.get(words[0]) if words[0] in ("round", "rounds") else None
    if words[-1] in _UNITS:
        return _UNITS[words[-1]]
    return next((_UNITS[one] for one in words if one in _UNITS and len(one) > 2), None)


def currency_in(name: str) -> str | None:
    """The currency that a name ends with.

    >>> currency_in("cost_eur"), currency_in("Cost (USD)"), currency_in("Kosten €"), currency_in("cost")
    ('EUR', 'USD', 'EUR', None)
    """
    *_, last = plain(name).upper().split("_")
    if last in CURRENCIES:
        return last
    return next(
        (code for sign, code in SIGNS.items() if (name.endswith(sign) if sign.isalpha() else sign in name)), None
    )


def unit_named(field_name: str, value: object) -> str:
    """A unit of time as the caller writes it."""
    unit = _UNITS.get(value.strip().lower()) if isinstance(value, str) else None
    if unit is None:
        raise InvalidValue(field_name, value, f"must be one of {', '.join(UNIT_NAMES)}")
    return unit


def by_name(role: str, names: Sequence[str]) -> list[str]:
    """Those of the plainest tier that any of the names is in."""
    tiers = {name: tier for name in names if (tier := tier_of(role, name)) is not None}
    best = min(tiers.values(), default=None)
    return [name for name, tier in tiers.items() if tier == best]


def _without_unit(said: str) -> str:
    head, _, last = said.rpartition("_")
    return head if last in _UNITS else said


def _without_currency(said: str) -> str:
    head, _, last = said.rpartition("_")
    return head if last.upper() in CURRENCIES else said
