"""Documents in the window: dropped, read, embedded, listed, opened at a page."""
