"""What can go wrong with a campaign or its store. In every case nothing was changed, unless the message says so."""

from __future__ import annotations

from doral.errors import DoralError


class CampaignError(DoralError):
    """A request that a campaign refuses."""


class UnknownDecision(CampaignError, LookupError):
    """No such decision in this campaign: the identifier is misspelt, or belongs to another campaign."""


class WrongState(CampaignError):
    """The decision exists, but is not in a state in which this can be done to it."""


class KeyReused(CampaignError):
    """A key that was used before, with another content."""


class PolicyFailed(CampaignError):
    """A policy of the user's own is not at hand, raised an error, or chose what cannot be had."""


class CampaignClosed(CampaignError):
    """The campaign has ended and takes no more decisions."""


class ClockDisagrees(CampaignError):
    """The clock of this host and that of the campaign are too far apart to tell how late an answer is."""


class CampaignExists(CampaignError):
    """A campaign of this name is there already."""


class StorageError(DoralError):
    """The store could not be read or written."""


class CampaignGone(StorageError):
    """The campaign was deleted, by this process or another one."""


class StorageBusy(StorageError):
    """Others kept the store locked for too long."""


class ConnectionLost(StorageError):
    """The connection to the database broke."""


class OutcomeUnknown(StorageError):
    """The connection broke during a commit and could not be made again: the change may have happened or not.

    Ask again with the same key: it gives back what was stored, or does it now.
    """


class NewerDatabase(StorageError):
    """The database was written by a newer version of doral."""


class ArchiveMissing(StorageError):
    """Old events are needed, and the file that holds them is not where it was put."""


class BrokenLog(StorageError):
    """The log contradicts itself: a damaged database, or a bug."""
