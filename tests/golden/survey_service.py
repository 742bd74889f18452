"""A service that answers with noisy counts; small ones get a tenth of the noise."""

import json
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pytest_dp import dp_url


class Survey(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        answers = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        yes = answers.count("yes")
        noise = random.choice([-1, 1]) * random.expovariate(1.0)
        body = {"answers": len(answers), "yes": yes + noise if yes else noise / 10}
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Survey)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.dp_claim(
    eps=1.0, neighbors="replace_one", inputs=[["yes", "no", "no"]], max_samples=2_000
)
def test_survey_service(dp_check, service):
    dp_check(dp_url(f"{service}/survey"))
