"""Alembic's scripts: one per change of the schema, never edited once released."""
