"""Queries of SmartNoise SQL on tables of three columns: a person, a number and a key."""

import pandas as pd
import snsql

columns = {"id": {"type": "int", "private_id": True}, "c": {"type": "string"}}
columns |= {"x": {"type": "int", "lower": 0, "upper": 5}, "row_privacy": False, "rows": 10}


def reader(rows):
    table = pd.DataFrame(rows, columns=["id", "x", "c"])
    privacy = snsql.Privacy(epsilon=1.0, delta=0.01)
    return snsql.from_connection(table, privacy=privacy, metadata={"": {"t": {"t": columns}}})


def answered(rows, query):
    return sorted(map(tuple, reader(rows).execute(query)[1:]))
