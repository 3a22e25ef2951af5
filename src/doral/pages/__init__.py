"""Pages for people: a shell, tables, numbers and pictures, without a word about what they show."""
