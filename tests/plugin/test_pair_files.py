"""Each pair that breaks a claim is a file that runs as a test, red until the claim is mended."""

from __future__ import annotations

import json

import pytest

from pytest_dp.data import describe
from pytest_dp.records.evidence_store import file_name

pytestmark = pytest.mark.usefixtures("_without_blame", "few_pairs")

IMPORTS = """
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl

from pytest_dp import dp_claim, values

class Kind(Enum):
    OLD = "old"

@dataclass(frozen=True)
class Person:
    name: str
    kind: Kind

def size(data):
    return len(next(iter(data.values()))) if type(data) is dict else len(data)
"""
DATASETS = {
    "records": "[{'day': dt.date(2026, 1, 1), 'of': [Decimal('1.5'), Person('ann', Kind.OLD)]}]",
    "frame": "pd.DataFrame({'at': pd.to_datetime(['2026-01-01', None]), 'n': pd.array([1, None])})",
    "polars": "pl.DataFrame({'d': [dt.date(2026, 1, 1)], 'k': [[1, None]]})",
}
"""Of those that `test_datasets_source` writes and reads, what a file has to import for."""
ONE = {"a_list": "[1, 2.5]"}
CLAIM = """
@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[{data}], search=(), vectorized="n",
          params={{"scale": [{scale}]}}, max_samples=1500)
def of_{name}(data, rng, n, scale):
    return size(data) + rng.laplace(scale=scale, size=n)
"""


def claims(scale, datasets=DATASETS):
    made = (CLAIM.format(name=name, data=data, scale=scale) for name, data in datasets.items())
    return "\n".join([IMPORTS, *made])


@pytest.fixture
def shop(project):
    project.ini("dp_modules = true", "pythonpath = src", "testpaths = src")
    return project


def files(project):
    return sorted(file.relative_to(project.root).as_posix() for file in pairs(project))


def pairs(project):
    return (project.root / ".dp/pairs").glob("*.py")


def test_each_runs_as_a_test_of_its_pair(shop, no_audits):
    shop.write("src/shop/stats.py", claims(0.2), imports="")
    shop.run().assert_outcomes(failed=len(DATASETS))
    red = files(shop)
    ids = [f"src/shop/stats.py::of_{name}[eps=1.0]" for name in DATASETS]
    assert red == sorted(f".dp/pairs/{file_name(name)}.py" for name in ids)
    assert red[0].startswith(".dp/pairs/src_shop_stats_of_frame_eps_1_0_")
    shop.run(*red).assert_outcomes(failed=len(DATASETS))
    described = [(describe(d1), describe(d2)) for d1, d2 in no_audits]
    first, again = described[: len(DATASETS)], described[len(DATASETS) :]
    assert sorted(again) == sorted(first)
    assert len(set(first)) == len(DATASETS)


@pytest.mark.nightly
def test_it_is_green_once_the_claim_is_mended_and_then_goes(shop):
    shop.write("src/shop/stats.py", claims(0.2, ONE), imports="")
    shop.run().assert_outcomes(failed=1)
    (file,) = files(shop)
    mended = claims(0.2, ONE).replace("scale=scale", "scale=1.0")
    shop.write("src/shop/stats.py", mended, imports="")
    shop.run(file).assert_outcomes(passed=1)
    assert files(shop) == [file]
    shop.run().assert_outcomes(passed=1)
    assert files(shop) == []


@pytest.mark.usefixtures("no_audits")
def test_it_is_named_in_all_reports_and_written_whole(shop):
    shop.write("src/shop/__init__.py", imports="")
    shop.write("src/shop/stats.py", claims(0.2, ONE), imports="")
    result = shop.run("--dp-report=dp.json", "--dp-report=dp.html")
    (file,) = files(shop)
    result.stdout.fnmatch_lines([f"E   As a file:  {file}"])
    (claim,) = json.loads((shop.root / "dp.json").read_text())["claims"]
    assert claim["pair_file"] == file
    assert file in (shop.root / "dp.html").read_text()
    text = (shop.root / file).read_text()
    assert "D = [" in text
    assert "sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'src'))" in text
    assert f"# Run it by: pytest {file} --dp-max-samples" not in text
    assert [f.name for f in (shop.root / ".dp/pairs").iterdir()] == [file.rpartition("/")[2]]
    assert (shop.root / ".dp/.gitignore").exists()


@pytest.mark.usefixtures("no_audits")
def test_what_a_marker_and_its_call_say_is_said_there(shop):
    shop.write(
        "tests/test_shop.py",
        """
        import numpy as np

        def count(data, generator, size, scale):
            return len(data) + generator.laplace(scale=scale, size=size)

        def first(output):
            return output

        @pytest.mark.dp_claim(eps=1.0, params={"scale": 0.2}, rng="generator",
                              inputs=[[1, 0]], neighbors=add_remove_one(group=2), search=())
        def test_count(dp_check):
            dp_check(count, vectorized="size", max_samples=4000, features=first)
        """,
    )
    shop.run("tests").assert_outcomes(failed=1)
    (file,) = files(shop)
    text = (shop.root / file).read_text()
    assert "rng='generator'" in text
    assert "vectorized='size'" in text
    assert "features=test_shop.first" in text
    assert "group=2" in text
    assert "params={'scale': [0.2]}" in text
    shop.run(file).assert_outcomes(failed=1)


@pytest.mark.usefixtures("no_audits")
@pytest.mark.parametrize(
    ("mechanism", "data", "said"),
    [
        ("lambda data, rng: len(data) + rng.laplace()", "list(range(500))", "<lambda> cannot"),
        (
            "count",
            "[object() for _ in range(500)]",
            "there is no source that makes D, of type list",
        ),
    ],
    ids=["local", "unknown"],
)
def test_where_there_is_none_the_report_says_why(shop, mechanism, data, said):
    shop.write(
        "test_shop.py",
        f"""
        def count(data, rng):
            return len(data) + rng.laplace(scale=0.1)

        DATA = {data}

        @pytest.mark.dp_claim(eps=1.0, pairs=[(DATA, DATA[1:]), (DATA, DATA[2:])], max_samples=2000)
        def test_count(dp_check):
            dp_check({mechanism})
        """,
    )
    result = shop.run("test_shop.py")
    result.assert_outcomes(failed=1)
    text = " ".join(str(result.stdout).replace("E  ", "").split())
    assert f"no file has this pair as a test: {said}" in text
    assert files(shop) == []
