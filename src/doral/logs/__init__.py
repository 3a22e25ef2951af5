"""Reading of logs: any table, its columns understood, checked, and put into the order of time."""
