"""A CSV file of noisy figures, for a spreadsheet."""

import csv
import io

import numpy as np

from pytest_dp import dp_claim

STAFF = [
    {"team": "sales", "salary": 41_000},
    {"team": "sales", "salary": 52_000},
    {"team": "legal", "salary": 78_000},
]


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[STAFF], max_samples=20_000)
def salary_export(staff, rng):
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["team", "people", "salaries"])
    for team in ("legal", "sales"):
        paid = [min(person["salary"], 100_000) for person in staff if person["team"] == team]
        people = len(paid) + rng.laplace(scale=4.0)
        salaries = sum(paid) + rng.laplace(scale=100_000)
        writer.writerow([team, round(people, 2), round(float(np.clip(salaries, 0, None)))])
    return file.getvalue()
