"""A proxy that forwards to one server and fails on purpose: answers lost after the effect, 5xx before and after it, 409 for creates."""

import http.client
import random
import threading
import urllib.parse

from scripted import Scripted


class FaultyProxy(Scripted):
    """with FaultyProxy(url, seed) as proxy: … proxy.url. `counts` says how often each fault happened."""

    def __init__(self, url, seed, lost=0.04, before=0.03, after=0.03, conflict=0.04):
        parts = urllib.parse.urlsplit(url)
        self.backend = parts.netloc
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.counts = {"lost": 0, "before": 0, "after": 0, "conflict": 0, "requests": 0}
        self.chances = {"lost": lost, "before": before, "after": after, "conflict": conflict}
        self.listen()

    def fault(self, create):
        with self.lock:
            self.counts["requests"] += 1
            for name, chance in self.chances.items():
                if self.random.random() < chance and (name != "conflict" or create):
                    self.counts[name] += 1
                    return name
        return None

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        fault = self.fault(request.headers.get("If-None-Match") == "*")
        if fault == "before":
            return self.send(request, 503, b"")
        if fault == "conflict" and self.random.random() < 0.5:
            return self.send(request, 409, b"")
        connection = http.client.HTTPConnection(self.backend, timeout=60)
        try:
            headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "connection", "content-length")}
            connection.request(request.command, request.path, body, {**headers, "Host": self.backend, "Content-Length": str(len(body))})
            answer = connection.getresponse()
            data, status = answer.read(), answer.status
            kept = {k: v for k, v in answer.getheaders() if k.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server")}
        finally:
            connection.close()
        if fault == "lost":
            request.close_connection = True
            return request.connection.close()
        if fault == "after":
            return self.send(request, 500, b"")
        if fault == "conflict":
            return self.send(request, 409, b"")
        return self.send(request, status, data, kept)

    def send(self, request, status, body, headers=None):
        try:
            request.send_response(status)
            for name, value in (headers or {}).items():
                request.send_header(name, value)
            if status not in (204, 304):
                request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            request.close_connection = True
