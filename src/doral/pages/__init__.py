"""Parts of HTML pages: a shell, tables, numbers and pictures, independent of their content."""
