"""The text on which `models quantize` measures what it cost, when the user gives none: plain English of ours.

Prose, talk, instructions, a table and a little code, in about a thousand tokens. It says nothing of other languages.
"""

TEXT = """\
The old ferry crossed the estuary four times a day, and in the season six times, and for as long as anyone in the village \
could remember it had been late. Nobody minded very much. People who took the ferry had made up their minds about time \
before they stepped aboard, and those who had not were cured of it by the middle of the crossing, when the engine was \
stopped to let the mud settle and there was nothing to hear but gulls and the water slapping against the hull. The \
captain, a broad woman named Ruth Aldous, used these pauses to sell tea from an urn. She had inherited the urn together \
with the boat, and of the two it was the more reliable.

"Does it ever sink?" a boy asked her one morning. He was holding his sister's hand, or she was holding his.

"Twice," said Ruth. "Both times at the jetty, both times in February, and both times because somebody left the bilge \
valve open. Never with passengers. Milk?"

The boy thought about this. "Who left it open?"

"I did," said Ruth, "the first time. The second time it was the harbour master, who had come aboard to show me how it \
ought to be closed."

What makes a tide is simple to say and hard to see. The moon pulls on the whole of the earth, but it pulls hardest on the \
side that is nearest to it, and least on the side that is farthest away. The difference stretches the oceans a little, so \
that there are two bulges of water, one beneath the moon and one opposite, and the solid earth turns underneath them once \
a day. A point on the coast therefore passes through high water twice, roughly every twelve hours and twenty-five \
minutes. The extra minutes come from the moon itself, which has moved on along its path by the time the earth has turned \
all the way round. When the sun and the moon pull along the same line, at new moon and at full moon, the tides are \
larger; these are called spring tides, although they have nothing to do with the season.

To make a loaf of plain bread you need 500 grams of flour, 340 grams of water, 10 grams of salt and a small spoon of dry \
yeast. Mix everything in a bowl until no dry flour is left. Cover it and wait for half an hour, then fold the dough over \
itself from four sides, and do the same again after another half hour. Let it rise in a warm place until it has doubled, \
which takes between one and three hours. Shape it, let it rest for forty minutes, and heat the oven to 230 degrees with an \
empty iron pot inside. Bake the loaf in the pot, with the lid on for twenty-five minutes and without it for another \
twenty. It is done when it sounds hollow underneath. Do not cut it while it is hot, however much you want to.

Minutes of the meeting of 14 March. Present: Ms. Okafor (chair), Mr. Lindqvist, Ms. Tanaka, Mr. Reyes. Apologies: Dr. \
Whitcombe. 1. The minutes of the last meeting were approved. 2. Mr. Lindqvist reported that the roof of the boathouse had \
been inspected. The beams are sound; eleven slates are broken and the gutter on the north side must be replaced. Two \
offers were received, one of 4,200 and one of 3,650 pounds. It was agreed to accept the lower one, provided that the work \
is finished before the end of April. 3. Ms. Tanaka asked for volunteers for the open day. Five are needed and three have \
been found. 4. The next meeting will be held on 11 April at half past seven.

The following function returns the position of the first item in a sorted list that is not smaller than a given value. It \
halves the range in every step, so that a list of a million items needs about twenty comparisons.

def lower_bound(items, value):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low

The lake freezes from the edges. First there is a thin clear plate among the reeds, which breaks with a sound like glass \
when a duck walks over it; a week later the plate has grown white and reaches as far as the second buoy, and the children \
throw stones to hear it ring. Nobody skates before the school teacher has been out with her auger and has measured twelve \
centimetres in five different places. She writes the numbers on a board by the boathouse, with the date, and under them \
either the word "wait" or the word "yes". In some years it says "wait" until March. In the winter of the great frost it \
said "yes" on the third of December, and the whole village, the shopkeeper, the priest, the two policemen and a visiting \
cousin from the south who had never seen ice that was not in a drink, went out together and stood on the water, looking \
down between their feet into the dark.
"""
