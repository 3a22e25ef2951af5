"""`doral serve`: a store of campaigns as a service, and the pages that its operators keep open."""

from doral.service import paths as paths  # before any route is made: it says what a part of a path may hold
