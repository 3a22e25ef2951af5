"""`doral.connect`: the campaigns of a service, with the calls of local ones."""
