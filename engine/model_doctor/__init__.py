"""Is this model file sound: a look at the file, and short runs beside the reference."""
