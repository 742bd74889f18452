"""Sentences that users read, compared with patterns that have to be read twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest
from pages import PAGES
from pages import name as name_of
from trees import trees

LIMIT = 0.02
"""Share of sentences that the patterns may hit: some hits are plain all the same."""
_BE = r"(?:is|are|was|were|be|been)"
PATTERNS = {
    "clause as a subject": (
        r"^(?:What|Whether|Who(?:ever)?|Which(?:ever)?)\b(?!.*\?$)"
        r"|^That (?:the|an?|it|they|no|some|one|in|what|of)\b",
        "What fails is shown at its line.",
    ),
    "clause after a preposition": (
        r"\b(?:of|from|with|in|to|by|on|at|for|than|as|against) what\b|\b(?:is|are|was) what\b",
        "It is made of what others have.",
    ),
    "measure without a number": (
        r"\b(?<!times )(?:so|as|that) (?:many|much|few|little|often)\b(?! as\b)",
        "It draws so many of them.",
    ),
    "inversion": (
        r"^(?:Of|Nor|Neither)\b|^(?:From|To|By|On) [^,;:]{1,40}, (?:only|what|none|all)\b",
        "Of five runs, the first is kept.",
    ),
    "stacked negatives": (
        r"\bno (?:less|fewer|more|sooner|longer than)\b|\b(?:nothing|none|nobody|all) but\b"
        rf"|\b(?<!ere ){_BE} no (?!longer\b)[a-z]+\b|\bnot (?:un\w+|without|no)\b|\bnothing more\b",
        "It is no pair of neighbours.",
    ),
    "trailing comparison": (
        r"\bas (?:it|they|one|he|she|the \w+|an? \w+|others) "
        r"(?:do|does|did|is|are|was|were|has|have|had|may|can|would)\b(?=[.,;:)]|$)",
        "It reads them as they are.",
    ),
    "passive report": (
        rf"\b{_BE} (?:told|said|known|held|meant|taken|thought|seen) (?:to|of|as|that)\b",
        "The rule is known to hold.",
    ),
    "banned word": (
        r"\b(?:bears?|bore|borne) (?:it |them )?out\b|\bbearing out\b"
        r"|\b(?:un)?heed(?:s|ed|ing)?\b|\bremind\w*|\bmend(?:s|ed|ing)?\b"
        r"|\b(?:hope\w*|hoping|doubt\w*|told|luck\w*|whose|alike|apart|riddles?|said|beyond)\b"
        r"|\b(?:whoever|whatever|wherever|lest|anew|afresh|thereof|hence|else's)\b",
        "Runs bear out the loss.",
    ),
    "pronoun for a noun": (
        r"\bthat (?:of|that|which|who)\b|\bthose (?:of|that|which|who|with|from|for|in)\b"
        r"|\b(?:the )?ones? (?:that|which|who|with)\b",
        "It takes those that are smaller.",
    ),
    "word that points back": (
        r"^(?:The same|So|Such(?! an?\b)|Else|Those|Others|Both (?:are|have|were|look|come))\b"
        r"|^The (?:other|former|latter|first|second) (?:is|has|was|had|takes|holds|comes)\b",
        "The same holds for arrays.",
    ),
    "where for if": (
        r"^Where\b(?!.*\?$).*\b(?:it|they|that|nothing|none)\b|\bwhere (?:nothing|none|no)\b"
        r"|\bwhere (?:it|they|that) (?!run|come)\w+\b",
        "Where it has one, the seed counts.",
    ),
    "idiom": (
        r"\b(?:held|holds?|holding) (?:\w+ )?against\b|\bg(?:ives?|iven|iving) (?:\w+ )?away\b"
        r"|\bsp(?:eaks?|oken) of\b|\bstands? (?:behind|beside|apart|in place)\b"
        r"|\bleaves? (?:\w+ )?(?:room|possible)\b|\bcomes? (?:of|out of)\b|\bmakes? up for\b",
        "Real runs are held against the loss.",
    ),
    "afterthought": (
        r"\b(?:or|and) (?:none|neither|nothing)\b[.,;:]?$|\b(?:at|in) that\b[.,;]"
        r"|\b(?:let alone|save for|but for|if not|if any|if at all|all the same|as such)\b",
        "It may have some, or none.",
    ),
    "more than 40 words": (r"^(?:\S+\s+){40,}", "One idea " * 21),
}
"""A regular expression, and a sentence that it hits."""
_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_\[]*(?:[A-Z0-9`]|pytest-dp))|\s*;\s+(?!$)")
_BLANK = re.compile(r"^```.*?^```$|<!--.*?-->", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[*-]|\d+\.|#+|>|\|)\s")


def plain(text: str) -> str:
    """Return a text with X in place of code and formulas, and links by their words."""
    text = re.sub(r"``[^`]+``|`[^`]+`|\$[^$]+\$", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[*_#>|]+", "", text).split())


def sentences_of(where: str, text: str) -> Iterator[tuple[str, str]]:
    for sentence in _END.split(plain(text)):
        if len(re.findall(r"[A-Za-z][A-Za-z'’-]*", sentence)) >= 5:  # else a name or a label
            yield where, sentence.strip(" -")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, item or cell of a page, with its line; no headings."""
    text = _BLANK.sub(lambda found: "\n" * found[0].count("\n"), text)
    start, held = 0, ""
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if held and (not line.strip() or _ITEM.match(line)):
            yield start, held
            held = ""
        if line.startswith("|"):
            yield from ((number, cell) for cell in line.strip("|").split(" | "))
        elif line.strip() and not line.startswith("#"):
            start = start if held else number
            held += line + "\n"


def of_pages() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for line, text in paragraphs(page.read_text(encoding="utf-8")):
            yield from sentences_of(f"{name_of(page)}:{line}", text)


def of_help(config: pytest.Config) -> Iterator[tuple[str, str]]:
    group = config._parser.getgroup("pytest-dp")
    keys = [(key, about[0]) for key, about in config._parser._inidict.items() if key[:3] == "dp_"]
    for where, text in [*((o.dest, o.attrs().get("help", "")) for o in group.options), *keys]:
        yield from sentences_of(where, text)


def constants(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield strings of a module except docstrings, with X for each value in an f-string."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "X" for v in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from constants(node)


def of_messages() -> Iterator[tuple[str, str]]:
    for file, tree in trees().items():
        for line, text in constants(tree):
            if not re.search(r"[\\{}<>$]|\bdef |\bimport ", text):
                yield from sentences_of(f"{file}:{line}", text)


def hits(sentences: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{where}: {', '.join(names)}: {text}"
        for where, text in sentences
        if (names := [name for name, (regex, *_) in PATTERNS.items() if re.search(regex, text)])
    ]


def check(sentences: Iterable[tuple[str, str]]) -> None:
    read = list(sentences)
    found = hits(read)
    assert len(found) <= LIMIT * len(read), "\n".join([f"{len(found)} of {len(read)}:", *found])


def test_each_pattern_hits_its_example():
    for name, (_, hit) in PATTERNS.items():
        assert name in hits([("here", hit)])[0]


def test_the_pages_are_plain():
    check(of_pages())


def test_the_help_is_plain(pytestconfig):
    check(of_help(pytestconfig))


def test_the_messages_are_plain():
    check(of_messages())
