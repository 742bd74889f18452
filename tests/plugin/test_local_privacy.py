"""Mistakes that the page on local privacy names: each is made in its own code, and found."""

from __future__ import annotations

import pytest
from pages import ROOT, blocks

CODE = {block.file: block.text for block in blocks(ROOT / "docs/how-to/local-privacy.md")}
MISTAKES = {
    "the share of two answers, with three": ("survey.py", "+ len(ANSWERS) - 1", "+ 1"),
    "a lie that may be the truth": ("survey.py", " if other != answer]", "]"),
    "a hash that is kept too often": ("local_hashing.py", "+ G - 1)", "+ G - 3)"),
    "no clipping": ("temperature.py", "min(max(temperature, LOW), HIGH)", "temperature"),
    "a field that is there if it was answered": (
        "payload.py",
        '"smokes": bool(answer)}',
        '"smokes": bool(answer), **({"age": 0} if report["age"] is not None else {})}',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(project, few_pairs, mistake):
    file, right, wrong = MISTAKES[mistake]
    assert CODE[file].count(right) == 1
    project.write(file, CODE[file].replace(right, wrong), imports="")
    result = project.run(file, "--dp-jobs=1")
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*claimed eps = *, but *"])
