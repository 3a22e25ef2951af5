"""`doral serve`: a store of campaigns as a service, and the pages that its operators keep open."""
