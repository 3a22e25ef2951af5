"""How requests reach the log: sessions, groups of requests, replay, clocks, backups."""
