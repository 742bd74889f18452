"""Programs and services as mechanisms: what is sent, how answers are read, what is no answer."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from pytest_dp import ClaimError, MechanismError, dp_command, dp_url
from pytest_dp.black_boxes.boxes import (
    ConnectionLost,
    HTTPError,
    ProgramError,
    encode_data,
    parse_value,
)
from pytest_dp.outputs.raised import Raised
from pytest_dp.records.identity import is_outside
from pytest_dp.running.calling import Call

ROWS = [{"age": 41, "seen": None}, {"age": 7, "seen": "2024-02-01T00:00:00"}]
SEEN = [None, dt.datetime(2024, 2, 1)]


@dataclass
class Visit:
    age: int


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (pd.DataFrame({"age": [41, 7], "seen": pd.to_datetime(SEEN)}), ROWS),
        (np.array([(1, 0.5)], dtype=[("n", int), ("x", float)]), [{"n": 1, "x": 0.5}]),
        ([np.float32(0.5), True, pd.NA, "a", (1, 2)], [0.5, True, None, "a", [1, 2]]),
        ([Visit(3), dt.date(2024, 2, 1)], [{"age": 3}, "2024-02-01"]),
    ],
)
def test_data_are_sent_as_json(data, sent):
    assert json.loads(encode_data("json", data)) == sent


def test_data_are_sent_as_csv_or_as_one_likes_and_answers_are_json_numbers_or_text():
    text = b"age,seen\n41,\n7,2024-02-01T00:00:00\n"
    frame = pd.DataFrame({"age": [41, 7], "seen": pd.to_datetime(SEEN)})
    assert encode_data("csv", frame) == encode_data("csv", ROWS) == text
    assert encode_data("csv", [1, 0]) == b"1\n0\n"
    assert encode_data(lambda data: f"n={len(data)}", [1, 0]) == b"n=2"

    texts = ["3\n", " 2.5 ", '{"a": [1]}', "1e400", "1_0", "no data\n"]
    assert [*map(parse_value, texts)] == [3, 2.5, {"a": [1]}, math.inf, "1_0", "no data"]


def program(code: str, *arguments: str, **keywords):
    return dp_command([sys.executable, "-c", code, *arguments], **keywords)


def test_a_program_is_given_data_and_parameters():
    echo = program("import sys; print(sys.argv[1:], sys.stdin.read())", "--eps={eps}", "{a}")
    assert echo([1, 0], eps=0.5) == "['--eps=0.5', '{a}'] [1, 0]"
    both = program("import sys; print(sys.argv[1:])", "{a}{b}")
    assert both([1], a="{b}", b="{a}{b}") == "['{b}{a}{b}']"
    assert program("print(1)", read="text")([]) == "1\n"
    assert program("print('[1]')", read=json.loads)([]) == [1]
    assert program("import os; print(os.environ['NOISE'])", env={"NOISE": "2"})([]) == 2


def test_many_outputs_of_one_start():
    code = "import sys; print(*range(int(sys.argv[1])), sep=chr(10))"
    assert program(code, "{size}")([], size=3) == [0, 1, 2]
    assert program(code, "{size}")([]) == 0
    assert program("print([5, 6])", "{size}")([], size=2) == [5, 6]


MEETS = """
import os, sys, time
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
while len(os.listdir(sys.argv[1])) < 3:
    time.sleep(0.01)
print(1)
"""


def test_programs_run_at_once(tmp_path):
    """Each ends only after three have begun."""
    assert program(MEETS, str(tmp_path), at_once=3, seconds=60)([], size=3) == [1, 1, 1]


def test_an_exit_code_is_an_output_and_a_log_is_shown_only():
    log = "print('row 41', file=sys.stderr)"
    fails = program(f"import sys; {log}; sys.exit(len(sys.stdin.read()))")
    with pytest.raises(ProgramError, match="exit code 2") as raised:
        fails([])
    assert str(raised.value) == "exit code 2"
    assert "row 41" in "".join(traceback.format_exception(raised.value))
    (outcome,) = Call(fails, {}).draw([], 1, None)
    assert repr(outcome) == "raises ProgramError: exit code 2"
    assert "row 41" in outcome.trace
    assert fails([], size=2) == [Raised("ProgramError", "", "exit code 2")] * 2
    (unread,) = program("print('no data')", read=json.loads)([], size=1)
    assert unread.kind == "JSONDecodeError"
    with pytest.raises(ProgramError, match="ended by SIGKILL"):
        program("import os; os.kill(os.getpid(), 9)")([])


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        (dp_command(["./no-such-program"]), "cannot be started .*Give the path of a program"),
        (program("import time; time.sleep(9)", seconds=0.2), "no answer in 0.2 s.*seconds="),
        (dp_url("http://127.0.0.1:1", seconds=0.2), "no connection to 127.0.0.1:1 in 0.2 s"),
        (program("print(1)"), "params has 'eps', but .* has no {eps}"),
    ],
)
@pytest.mark.parametrize("size", [None, "size"])
def test_what_says_nothing_of_privacy_ends_an_audit(box, reason, size):
    params = {"eps": 1.0} if "eps" in reason else {}
    with pytest.raises(MechanismError, match=f"(?s){reason}"):
        Call(box, params, size=size).draw([], 2, None)


@pytest.mark.parametrize(
    ("make", "allowed"),
    [
        (lambda: dp_command("python count.py"), "Give a list"),
        (lambda: dp_url("localhost:8000"), "Give an address such as"),
        (lambda: dp_url("http://localhost", send="xml"), "Valid are 'json', 'csv'"),
        (lambda: dp_url("http://localhost", read="json"), "Valid are 'value', 'text'"),
        (lambda: dp_url("http://localhost", seconds=0), "Give the seconds"),
        (lambda: dp_url("http://localhost", at_once=0), "Give how many runs"),
    ],
)
def test_bad_input(make, allowed):
    with pytest.raises(ClaimError, match=allowed):
        make()


class Service(BaseHTTPRequestHandler):
    """Answers as its path says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.client_address, self.path, dict(self.headers), data))
        if self.path == "/lost":
            self.close_connection = True
            return
        if self.path == "/silent":
            time.sleep(0.5)
        status, body = (500, b"no  such column") if self.path == "/fails" else (200, data)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.path == "/ends"  # without a word

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        server.asked, server.at = [], f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def test_a_connection_is_kept_and_none_is_copied(server):
    echo = dp_url(f"{server.at}/echo?q={{q}}", headers={"Authorization": "me"})
    copies = [echo, echo, pickle.loads(pickle.dumps(echo))]
    assert [box([1], q="a b") for box in copies] == [[1], [1], [1]]
    (first, path, headers, sent), (second, *_), (third, *_) = server.asked
    assert (path, headers["Authorization"], sent) == ("/echo?q=a%20b", "me", b"[1]")
    assert headers["Content-Type"] == "application/json"
    assert first == second != third


def test_a_connection_that_the_service_ended_is_mended(server):
    ends = dp_url(f"{server.at}/ends")
    for run in range(3):
        assert ends([run]) == [run]
        time.sleep(0.05)
    assert len(server.asked) == 3


def test_what_a_service_answers_is_never_asked_for_twice(server):
    with pytest.raises(HTTPError, match="500 Internal Server Error: no such column"):
        dp_url(f"{server.at}/fails")([])
    with pytest.raises(ConnectionLost):
        dp_url(f"{server.at}/lost")([])
    assert len(server.asked) == 2
    with pytest.raises(MechanismError, match="no answer in"):
        dp_url(f"{server.at}/silent", seconds=0.1)([])
    assert len(server.asked) == 3


def test_a_service_that_starts_late_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def answer_once():
        with ThreadingHTTPServer(("127.0.0.1", port), Service) as late:
            late.asked = []
            late.handle_request()

    threading.Timer(0.2, answer_once).start()
    assert dp_url(f"http://127.0.0.1:{port}/ends")([1]) == [1]


def test_what_is_outside_may_be_another_at_any_time():
    assert is_outside(dp_url("http://localhost"))
    box = dp_command(["count"])
    assert is_outside(lambda data: box(data))
    assert not is_outside(lambda data: len(data))
