"""English words that say the same in another form that no common ending shows: "won" and "win", "heavy" and "weigh"."""

from __future__ import annotations

from inglenook.storage.content_words import stem

_ALIKE = """
win won, build built, write wrote written, begin began begun, become became, lead led, make made, take took taken,
give gave given, hold held, find found, send sent, sell sold, lose lost, leave left, meet met, pay paid,
grow grew grown, fall fell fallen, rise rose risen, choose chose chosen, fight fought, buy bought, bring brought,
teach taught, think thought, know knew known, speak spoke spoken, run ran, see saw seen, go went gone, come came,
keep kept, spend spent, stand stood, tell told, drive drove driven, break broke broken, draw drew drawn, eat ate eaten,
die died dead death, bear born birth, high height tall, weigh weight heavy, long length, wide width, deep depth,
old age aged, big large size, cost price expensive, hot warm temperature, fast quick speed
"""

LIKE_WORDS = {stem(form): stem(forms.split()[0]) for forms in _ALIKE.split(",") for form in forms.split()[1:]}
"""From the stem of a form to that of the word that stands for all of them."""
