"""The words of the course in the languages that labs may be in. Pure.

In: a language. Out: its words; English ones where there are none of it. A lab's own words are in its directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """The words of one language."""

    bits: str
    prefix: str
    binary: str
    round_trip: str
    sign: str
    reciprocal: str
    again: str
    """A wrong answer without any hint."""
    digits: str
    """An answer that is rounded too much."""
    letter: str
    """An answer that is none of the choices."""
    states: Mapping[str, str]
    """The words for verdicts."""
    write_behind: str
    precision: str
    """It is printed once in each text, before the first question."""
    write_here: str
    """The same in a notebook."""
    question: str
    kinds: Mapping[str, str]
    """The kinds of answers, and how they are written."""
    how: str
    """The head of answers.yaml."""
    columns: tuple[str, str, str, str]
    """The columns of the table of a check."""
    points: str
    left: str
    """Added where a person gives more points."""
    not_graded: str
    repeated: str
    """The number of confirmed runs."""
    not_repeated: str
    """Added for those that were not."""
    handed_in: str
    unanswered: str
    no_run: str
    not_taken: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a run was not confirmed, by the English words (`grade.py`)."""
    colon: str = ":"
    """Behind the name of a question, and of a list."""
    prediction: str = "Prediction"
    """Before the name of one, in place of `question`."""
    unmarked: str = "It is recorded, and not marked: write it before you measure."
    compared: str = "you predicted {predicted}, answered {answered}"
    time: str = "Time"
    minutes: str = "{minutes} minutes"
    level: str = "Level"
    levels: Mapping[str, str] = field(default_factory=lambda: {"bachelor": "bachelor", "master": "master"})
    prerequisites: str = "You need to know"
    lab: str = "lab {number}, `{name}`"
    goals: str = "After this lab you can"
    one_of: str = "; {name} is one of {choices}"
    """It is added where a setting is one of several words."""
    comma: bool = False
    """Decimals are written behind a comma."""
    instead: str = ""
    """The verdict on an answer that cannot be read; empty: the message of `ewan.labs.base.units` is the verdict."""
    either: str = 'may be either of two amounts: write "{}" or "{}"'
    """The question that is put where an amount may be read in two ways: see `verdicts.py`."""
    begin: str = "{folder}: read {text}, or open {notebook}"
    """It is printed after a folder is made."""
    check: str = "ewan course check says what is right"


_EN = LanguageWords(
    bits="Bits or bytes? Look at the units once more.",
    prefix="Is the prefix right: n, µ, m; k, M, G?",
    binary="A thousand or 1024? Here k is a thousand and Ki is 1024.",
    round_trip="One way, or there and back?",
    sign="Look at the sign.",
    reciprocal="Is it the other way round: of which, by which?",
    again="Measure it once more, and look at what exactly is asked for.",
    digits="give three digits",
    letter="write a letter from a to {last}",
    states={
        "right": "right",
        "close": "close",
        "wrong": "wrong",
        "missing": "no answer yet",
        "unreadable": "cannot be read",
        "teacher": "for the teacher",
        "unknown": "not checked",
        "predicted": "recorded",
        "unpredicted": "no prediction yet",
    },
    precision="Give amounts with three digits, like `42.1ms`. With fewer digits an answer may count only as close.",
    write_here="Write it between the quotes of the next cell, {how}.",
    write_behind="Write it after `{name}:` in `answers.yaml`, {how}.",
    question="Question",
    kinds={
        "time": "as a time, like 42.1ms",
        "rate": "as a rate, like 9.5Mbit/s",
        "size": "as a size, like 1.2MB",
        "packets": "in packets, like 83packets",
        "count": "as a number, like 7",
        "ratio": "as a number, like 0.25",
        "share": "as a share, like 95%",
        "choice": "by its letter: {choices}",
        "words": "in your own words; your teacher reads it",
        "settings": "like {settings}",
    },
    how="Write each answer behind its name, with its unit and three digits: 42.1ms, 9.52Mbit/s, 1.23MB, 95.1%.",
    columns=("question", "answer", "verdict", "hint"),
    points="{reached} of {of} points",
    left="; {left} more from the teacher",
    not_graded="Not graded",
    repeated="{confirmed} of {runs} runs were repeated, with the same bytes",
    not_repeated="; {count} not: {reason}",
    handed_in="{file}: {answers} answers, {runs} runs, {size}: hand it in",
    unanswered="no answer yet",
    no_run="no run is in it: run the scenarios in the folder, so that results/ has them",
    not_taken="not taken",
)
_DE = LanguageWords(
    bits="Bit oder Byte? Sieh dir die Einheiten noch einmal an.",
    prefix="Stimmt der Vorsatz: n, µ, m; k, M, G?",
    binary="Tausend oder 1024? Hier ist k tausend und Ki 1024.",
    round_trip="Ein Weg, oder hin und zurück?",
    sign="Sieh dir das Vorzeichen an.",
    reciprocal="Ist es umgekehrt: wovon, wodurch geteilt?",
    again="Miss noch einmal, und lies genau, wonach gefragt ist.",
    digits="gib drei Ziffern an",
    letter="schreibe einen Buchstaben von a bis {last}",
    states={
        "right": "richtig",
        "close": "fast richtig",
        "wrong": "falsch",
        "missing": "noch keine Antwort",
        "unreadable": "nicht lesbar",
        "teacher": "für die Lehrkraft",
        "unknown": "nicht geprüft",
        "predicted": "notiert",
        "unpredicted": "noch keine Vorhersage",
    },
    precision="Gib Größen mit drei Ziffern an, etwa `42,1ms`: weniger ist vielleicht nur fast richtig.",
    write_here="Schreibe es zwischen die Anführungszeichen der nächsten Zelle, {how}.",
    write_behind="Schreibe es hinter `{name}:` in `answers.yaml`, {how}.",
    question="Frage",
    kinds={
        "time": "als Zeit, etwa 42.1ms",
        "rate": "als Rate, etwa 9.5Mbit/s",
        "size": "als Größe, etwa 1.2MB",
        "packets": "in Paketen, etwa 83packets",
        "count": "als Zahl, etwa 7",
        "ratio": "als Zahl, etwa 0.25",
        "share": "als Anteil, etwa 95%",
        "choice": "durch den Buchstaben: {choices}",
        "words": "in eigenen Worten; deine Lehrkraft liest es",
        "settings": "etwa {settings}",
    },
    how="Schreibe jede Antwort hinter ihren Namen, mit Einheit und drei Ziffern: 42,1ms, 9,52Mbit/s, 1,23MB, 95,1%.",
    columns=("Frage", "Antwort", "Urteil", "Hinweis"),
    points="{reached} von {of} Punkten",
    left="; {left} weitere von der Lehrkraft",
    not_graded="Nicht bewertet",
    repeated="{confirmed} von {runs} Läufen wurden mit denselben Bytes wiederholt",
    not_repeated="; {count} nicht: {reason}",
    handed_in="{file}: {answers} Antworten, {runs} Läufe, {size}: gib es ab",
    unanswered="noch keine Antwort",
    no_run="es ist kein Lauf darin: führe die Szenarien im Ordner aus, damit sie in results/ sind",
    not_taken="nicht übernommen",
    reasons={
        "changed scenario": "geändertes Szenario",
        "settings that the lab does not ask for": "Werte, nach denen der Versuch nicht fragt",
        "made by another kernel or node binary": "von einem anderen Kernel oder Knotenprogramm",
        "made by another version": "von einer anderen Version",
        "bytes differ": "andere Bytes",
        "too many": "zu viele",
    },
    prediction="Vorhersage",
    unmarked="Sie wird notiert und nicht bewertet: schreibe sie auf, bevor du misst.",
    compared="vorhergesagt hast du {predicted}, geantwortet {answered}",
    time="Zeit",
    minutes="{minutes} Minuten",
    level="Niveau",
    levels={"bachelor": "Bachelor", "master": "Master"},
    prerequisites="Du kennst schon",
    lab="Versuch {number}, `{name}`",
    goals="Nach diesem Versuch kannst du",
    one_of="; {name} ist eins von {choices}",
    comma=True,
    instead="schreibe es {how}",
    either='kann zweierlei sein: schreibe "{}" oder "{}"',
    begin="{folder}: lies {text}, oder öffne {notebook}",
    check="ewan course check sagt, was richtig ist",
)
_FR = LanguageWords(
    bits="Bits ou octets ? Regardez encore les unités.",
    prefix="Le préfixe est-il juste : n, µ, m ; k, M, G ?",
    binary="Mille ou 1024 ? Ici, k est mille et Ki est 1024.",
    round_trip="Un aller simple, ou un aller-retour ?",
    sign="Regardez le signe.",
    reciprocal="N'est-ce pas l'inverse ? Qu'est-ce qui est divisé, et par quoi ?",
    again="Mesurez encore une fois, et relisez ce qui est demandé exactement.",
    digits="donnez trois chiffres",
    letter="écrivez une lettre de a à {last}",
    states={
        "right": "juste",
        "close": "presque juste",
        "wrong": "faux",
        "missing": "pas encore de réponse",
        "unreadable": "illisible",
        "teacher": "pour l'enseignant",
        "unknown": "non vérifié",
        "predicted": "enregistré",
        "unpredicted": "pas encore de prédiction",
    },
    precision="Donnez trois chiffres, comme `42,1ms` : une réponse moins précise peut n'être que presque juste.",
    write_here="Écrivez la réponse entre les guillemets de la cellule suivante, {how}.",
    write_behind="Écrivez la réponse après `{name}:` dans `answers.yaml`, {how}.",
    question="Question",
    kinds={
        "time": "comme une durée, par exemple 42,1ms",
        "rate": "comme un débit, par exemple 9,5Mbit/s",
        "size": "comme une taille, par exemple 1,2MB",
        "packets": "en paquets, par exemple 83packets",
        "count": "comme un nombre, par exemple 7",
        "ratio": "comme un nombre, par exemple 0,25",
        "share": "comme une part, par exemple 95%",
        "choice": "par sa lettre : {choices}",
        "words": "avec vos propres mots ; votre enseignant lit la réponse",
        "settings": "par exemple {settings}",
    },
    how="Écrivez chaque réponse après son nom, avec son unité et trois chiffres : 42,1ms, 9,52Mbit/s, 1,23MB, 95,1%.",
    columns=("question", "réponse", "verdict", "indice"),
    points="{reached} points sur {of}",
    left=" ; {left} de plus sont donnés par l'enseignant",
    not_graded="Non noté",
    repeated="{confirmed} exécutions sur {runs} ont été répétées, avec les mêmes octets",
    not_repeated=" ; {count} non : {reason}",
    handed_in="{file} : {answers} réponses, {runs} exécutions, {size} : remettez-le",
    unanswered="pas encore de réponse",
    no_run="aucune exécution n'est jointe : exécutez les scénarios dans le dossier, pour que results/ les contienne",
    not_taken="non repris",
    reasons={
        "changed scenario": "scénario modifié",
        "settings that the lab does not ask for": "des valeurs que le TP ne demande pas",
        "made by another kernel or node binary": "un autre noyau ou un autre programme de nœud",
        "made by another version": "une autre version",
        "bytes differ": "d'autres octets",
        "too many": "trop d'exécutions",
    },
    colon=" :",
    prediction="Prédiction",
    unmarked="La prédiction est enregistrée, et non notée : écrivez-la avant de mesurer.",
    compared="vous avez prédit {predicted} et répondu {answered}",
    time="Durée",
    minutes="{minutes} minutes",
    level="Niveau",
    levels={"bachelor": "licence", "master": "master"},
    prerequisites="Vous connaissez déjà",
    lab="le TP {number}, `{name}`",
    goals="Après ce TP, vous saurez",
    one_of=" ; {name} est parmi {choices}",
    comma=True,
    instead="écrivez la réponse {how}",
    either='peut désigner deux quantités : écrivez "{}" ou "{}"',
    begin="{folder} : lisez {text}, ou ouvrez {notebook}",
    check="ewan course check dit ce qui est juste",
)
_ALL: Mapping[str, LanguageWords] = {"en": _EN, "de": _DE, "fr": _FR}


def of(language: str) -> LanguageWords:
    """The words of a language, or English ones."""
    return _ALL.get(language, _EN)
