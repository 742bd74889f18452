"""Whether the wheel and the sdist of `dist/` work elsewhere; `make package` runs it.

Each is installed in a fresh environment, with its own dependencies and nothing else. The tests are
those of the sdist, without the source beside them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from venv import create

CHOSEN = (
    "tests/plugin/test_readme.py",
    "tests/plugin/test_tutorial.py",
    "tests/plugin/test_dp_check.py",
    "tests/plugin/test_html.py",
    "tests/unit/test_claim.py",
    "tests/unit/test_evidence_betting.py",
    "tests/unit/test_exact_draws.py",
    "tests/unit/test_report_records.py",
)
"""Those that need no other package, and read no file of the source."""


def unpacked(sdist: Path, folder: Path) -> Path:
    """The folder that is in an sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [root] = folder.iterdir()
    return root


def main(dist: Path) -> None:
    """Install each, and run the tests; any exit code but 0 ends it."""
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    for package in (wheel, sdist):
        with TemporaryDirectory() as folder:
            root = unpacked(sdist, Path(folder, "source"))
            source = root / "pytest_dp"
            files = {file.relative_to(root).as_posix() for file in source.rglob("*.*")}
            if missing := files - set(zipfile.ZipFile(wheel).namelist()):
                sys.exit(f"The wheel has none of {', '.join(sorted(missing))}.")
            if lost := re.findall(r"\]\((?!https?:|#).*?\)", (root / "PKG-INFO").read_text()):
                sys.exit(f"Links of the README lead nowhere on an index: {', '.join(lost)}.")
            rmtree(source)
            create(Path(folder, "venv"), with_pip=True)
            place = "Scripts" if sys.platform == "win32" else "bin"
            python = Path(folder, "venv", place, "python")
            for arguments in (
                ["pip", "install", "--quiet", package.resolve()],
                ["pytest", *CHOSEN],
            ):
                command = [python, "-m", *arguments]
                print("$", *map(str, command), flush=True)
                subprocess.run(command, cwd=root, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
