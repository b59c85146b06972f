"""Text as models write it, on its way to the screen."""
