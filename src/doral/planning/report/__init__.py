"""A plan as people read it: page, figures, tables, text, and the files of a folder."""
