"""What experiments share: the shape that each fills in, cells and how they are run, claims, files, the page."""
