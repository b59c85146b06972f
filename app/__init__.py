"""The desktop program: window, command line and the composition root."""
