"""The words of the code: docstrings that begin with a verb or a noun, and names used once."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from trees import trees

CLAUSE = re.compile(r"(What|Whether|That|Of|The same)\b")
"""A docstring that begins like this says what something is about, and not what it is."""
NO_VERBS = """
a about after all also an and any anything as at because before beneath between both but by called
each either even everything exact exactly few file first for from greatest half how if in its
largest least logarithm lower many markdown more most never no nothing numeric on once one only our
over path random second single smallest so some source such that the their then these this those two
under until upper what when where whether which while who whole whose why with without
"""
"""Words that begin no docstring of a function; nor do plurals and verbs like "Returns"."""
IRREGULAR = re.compile(
    r"begun|bound|broken|brought|built|caught|chosen|cut|done|drawn|driven|dropped|"
    r"fallen|felt|found|given|gone|got|held|hidden|kept|known|laid|left|lost|made|"
    r"meant|met|paid|proven|put|read|run|said|seen|sent|set|shown|split|spread|"
    r"stood|taken|thought|thrown|told|won|worn|written"
)
NO_PARTICIPLES = "bound cut find_spec heed need reseed put read run seed set speed split spread"
"""Words that look like participles, and are verbs, nouns or hooks of Python."""
PUBLIC = {"claimed", "required", "violated"}
"""Names that users write: opendp.claimed(...), `required` of a relation, result.violated."""
FUNCTIONS_OF_SEVERAL = {
    "audit",  # of each method, as `protocols.Method` has it
    "claimed",  # of each library, which users call with the library's name
}


def documented(tree: ast.Module) -> Iterator[tuple[str, str, bool]]:
    """Yield each name with its docstring, and whether it is a function that is no property."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {ast.unparse(mark) for mark in getattr(node, "decorator_list", ())}
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            is_property = any(mark.endswith(("property", ".setter")) for mark in marks)
            text = ast.get_docstring(node) or ""
            yield getattr(node, "name", "the module"), text, is_function and not is_property


def begins_with_a_verb(text: str) -> bool:
    word = re.match(r"[A-Z][a-z]+\b(?!')|$", text)
    if word is None or re.search(r"[^s]s$", word[0]):
        return False
    return word[0].lower() not in NO_VERBS.split()


def is_lone_participle(name: str) -> bool:
    word = name.strip("_")
    is_special = name.startswith("__") and name.endswith("__")
    if is_special or word in NO_PARTICIPLES.split() or word in PUBLIC or "_" in word:
        return False
    return bool(IRREGULAR.fullmatch(word)) or word.endswith("ed")


def defined_twice(kind: type[ast.ClassDef | ast.FunctionDef]) -> set[str]:
    homes = defaultdict(list)
    for file, tree in trees().items():
        for node in tree.body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                homes[node.name].append(file)
    return {name for name, files in homes.items() if len(files) > 1}


def test_docstrings_of_functions_begin_with_a_verb():
    texts = ("Return it.", "Put, and go on.", "Returns it.", "``10,012``.", "The bins.", "Nothing.")
    assert list(map(begins_with_a_verb, texts)) == [True, True, False, False, False, False]
    wrong = [
        f"{file}: {name}: {text.splitlines()[0]}"
        for file, tree in trees().items()
        for name, text, is_function in documented(tree)
        if is_function and not begins_with_a_verb(text)
    ]
    assert wrong == []


def test_docstrings_of_things_begin_with_a_noun():
    """Modules, classes and properties."""
    wrong = [
        f"{file}: {name}: {text.splitlines()[0]}"
        for file, tree in trees().items()
        for name, text, is_function in documented(tree)
        if not is_function and CLAUSE.match(text)
    ]
    assert wrong == []


def test_functions_are_not_named_by_a_participle_alone():
    """Neither are methods and properties; functions inside of functions are not looked at."""
    assert [is_lone_participle(name) for name in ("_told", "fitted", "read", "fit")] == [1, 1, 0, 0]
    wrong = [
        f"{file}: {node.name}"
        for file, tree in trees().items()
        for scope in ast.walk(tree)
        if isinstance(scope, ast.Module | ast.ClassDef)
        for node in scope.body
        if isinstance(node, ast.FunctionDef) and is_lone_participle(node.name)
    ]
    assert wrong == []


def test_files_have_names_of_their_own():
    homes = defaultdict(list)
    for file in trees():
        homes[file.stem].append(file)
    twice = {name for name, files in homes.items() if len(files) > 1}
    assert twice == {"__init__"}


def test_classes_have_names_of_their_own():
    assert defined_twice(ast.ClassDef) == set()


def test_public_functions_have_names_of_their_own():
    assert defined_twice(ast.FunctionDef) == FUNCTIONS_OF_SEVERAL
