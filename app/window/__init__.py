"""The window around the pages, its start and its looks."""
