"""Make the sample document that a first start finds in its library: a guide of five pages, written for this program.

    QT_QPA_PLATFORM=offscreen python packaging/sample/make.py

The place and its people are made up. The questions that the window offers are in `app/window/sample_document.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from inglenook.app.chat.export_pdf import pdf_of

TARGET = Path(__file__).resolve().parents[2] / "app" / "window" / "sample_document.pdf"
TITLE = "Lantern Hut: a guide for guests"
PAGES = (
    ("Lantern Hut", "A guide for guests", (
        "Welcome to Lantern Hut, a small stone house at 1,420 metres above the valley of Sorrel. It sleeps twelve "
        "guests in three rooms. There is no mobile reception and no mains electricity here, which is why people come.",
        "This guide says how to get here, how to keep warm, what there is to eat, and what to do when something goes "
        "wrong. Please leave it on the table by the window for whoever comes after you.",
        "The hut is kept by Maren Tolsdorf and her brother Ivo. One of them is here from the first of May until the "
        "end of October. In winter the hut is closed, apart from the shelter room, which is never locked.",
    )),
    ("1. Getting here", "", (
        "From the village of Sorrel the path takes three hours and climbs 760 metres. It is marked with yellow "
        "lanterns painted on the rocks.",
        "The last bus from Sorrel down to the railway leaves at 17:40 on weekdays and at 16:10 on Sundays. There is "
        "no bus on public holidays.",
        "Cars have to stay at the sawmill car park, where a day costs 6 euros. Dogs are welcome on a lead, but they "
        "sleep in the shelter room.",
        "Do not take the short cut over the Grey Steps after rain: the rock is loose and three people had to be "
        "fetched from there last year.",
    )),
    ("2. Stove, light and water", "", (
        "The stove in the common room heats the whole house. To light it, open the lower flap fully, lay two sheets "
        "of paper and thin wood, light the paper, and close the door to a finger's width. Close the lower flap by half "
        "once the fire burns steadily, after about ten minutes.",
        "Wood is in the shed behind the house. Please bring in one basket for each evening, and one more for the "
        "guests who follow you.",
        "The lamps run on the solar batteries. They give light for about five hours; after that there are lanterns in "
        "the cupboard beside the door.",
        "Water comes from the spring above the house. It must be boiled for three minutes before you drink it.",
    )),
    ("3. Food and prices", "", (
        "Breakfast is at seven and costs 9 euros. Supper is at half past six and costs 18 euros; please say by noon "
        "whether you want it. There is always a dish without meat.",
        "A night costs 24 euros for adults and 12 euros for children under fourteen. Members of a mountain club pay "
        "20 euros.",
        "You can pay in cash or leave an envelope in the box by the stairs. Cards cannot be read here.",
        "On Saturdays Ivo bakes bread from rye and spelt. A loaf of one kilogram costs 7 euros and is gone by noon.",
    )),
    ("4. When something goes wrong", "", (
        "The emergency radio hangs to the left of the kitchen door. Switch it to channel 5, press the red button and "
        "say the name of the hut first. The rescue post in Sorrel listens day and night.",
        "The first-aid box is on the shelf above the radio. If you use something, write it on the list inside its "
        "lid, so that it is replaced.",
        "If the fire alarm sounds, leave the house by the nearest door and meet at the flagpole. Count your party and "
        "tell the keeper.",
    )),
    ("5. Before you leave", "", (
        "Sweep the room you slept in, fold the blankets, and put out the stove: close both flaps and wait until "
        "nothing glows.",
        "Take your rubbish down to the valley with you. Write your names and where you are going next into the book "
        "of the hut, so that we know where to look for you.",
        "Thank you for coming. We hope that you slept well.",
    )),
)  # fmt: skip


def page(number: int, heading: str, under: str, paragraphs: tuple[str, ...]) -> str:
    """Write one page."""
    style = ' style="page-break-before:always"' if number else ""
    level = "h2" if number else "h1"
    second = f"<p><i>{under}</i></p>" if under else ""
    return f"<{level}{style}>{heading}</{level}>{second}" + "".join(f"<p>{text}</p>" for text in paragraphs)


def main() -> int:
    """Write the file."""
    application = QApplication(sys.argv[:1])
    body = "".join(page(number, *one) for number, one in enumerate(PAGES))
    TARGET.write_bytes(pdf_of(f"<html><body>{body}</body></html>", TITLE))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
    application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
