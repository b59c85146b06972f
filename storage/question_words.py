"""Words that ask and join in languages other than English: they say nothing about which passage a question is about."""

from __future__ import annotations

import re

QUESTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        # German, Dutch, Scandinavian
        "wer wen wem wessen was welche welcher welches welchem welchen wie viele viel wo wann warum wieso woher wohin wofür "
        "der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird wurde wurden hat haben "
        "hatte in im an am auf aus bei mit nach von vom vor zu zum zur für über unter durch sich es er sie als auch nicht "
        "wie viele waar wanneer waarom welke hoeveel wat het een van en op hvad hvem hvor hvornår hvilken vad vem var när "
        # French, Spanish, Portuguese, Italian
        "qui que quoi quel quelle quels quelles où quand comment combien pourquoi est sont était le la les un une des du de et "
        "en dans par pour sur au aux à il elle qué quién quiénes cuál cuáles cuándo cuánto cuántos cuántas cuánta cómo dónde "
        "por el los las del al una unos y o se su sus con para fue era son es quem qual quais quando quanto quantos onde como "
        "porquê os as um uma do da dos das no na com foi chi che cosa quale quali quanti quante perché dove il lo gli i di "
        # Polish, Czech, Turkish, Indonesian, Vietnamese
        "co kto kogo czego gdzie kiedy jak jaki jaka jakie dlaczego ile który która w z na i jest są był kdo kde kdy proč kolik "
        "ne kim nerede nasıl zaman kaç hangi ve bir bu apa siapa kapan mana bagaimana berapa yang di dan là gì ai nào đâu khi "
        # Russian, Ukrainian
        "что кто кого кому чего чем чём как какой какая какое какие какого каком каким какую сколько где когда куда откуда почему "
        "зачем чей в во на и с со по из для от до о об у к за был была было были есть это его её их не он она они який коли де "
        # Greek
        "τι ποιος ποια ποιο ποιον πού πότε πώς πόσο πόσα πόσοι γιατί ο η το οι τα του της των και με σε για από είναι ήταν "
        # Arabic, Hebrew
        "ما ماذا من متى أين كيف كم لماذا هل أي أية هو هي هم في على إلى عن التي الذي الذين كان كانت و מה מי מתי איפה איך כמה למה "
        "איזה איזו של את על עם הוא היא היה "
        # Hindi
        "क्या कौन कब कहाँ कहां कैसे कितने कितनी कितना क्यों किस किसने किसके किसे कौन-सा के का की को में से पर है हैं था थी थे ने और "
        "एक यह वह लिए गया किया",
    )
)

QUESTION_PIECES = frozenset(
    re.findall(
        r"\S+",
        # Chinese, Japanese, Korean in pairs, Thai in trigrams, as the indexes cut them
        "什么 什麼 多少 哪里 哪裡 哪个 哪個 哪些 何时 何時 为什 為什 怎么 怎麼 如何 是谁 是誰 谁的 几个 幾個 是什 么时 麼時 时候 時候 い つ いつ "
        "どこ だれ 誰が なぜ どう 何で です すか ます した 무엇 언제 어디 누구 어떻 떻게 니까 인가 는가 อะไ ะไร ใคร เมื มื่ ื่อ อไร ที่ ไหน อย่ ย่า "
        "างไ งไร เท่ ท่า าไร ทำไ ำไม คือ ของ เป็ ป็น กี่",
    )
)
