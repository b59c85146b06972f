"""Where an engine runs, in this process or a child, and what its two sides say to each other."""
