"""A scripted S3 or Google Cloud Storage (their XML interfaces, path style) over a folder, which misbehaves on purpose.

Without options it does what those services do: listings in pages by byte order, ranges, conditional writes under a lock.
"""

import hashlib
import html
import pathlib
import re
import threading
import time
import urllib.parse

from scripted import Scripted


def etag(file):
    return f'"{hashlib.md5(file.read_bytes()).hexdigest()}"'


class CloudServer(Scripted):
    """with CloudServer(folder, …) as server: … server.url; keys are paths below the folder, the bucket is `bkt`."""

    def __init__(self, folder, **behaviour):
        self.folder = pathlib.Path(folder)
        self.behaviour = {
            "fail": None,  # called with (number, method, key, query) before every answer; (status, code) is answered instead, None goes on
            "listing": None,  # called with the list of (key, size) of a page; what it returns is listed instead
            "same_token": False,  # every page says that there is another one, and names itself
            "rewrite": None,  # called with (method, key, body) of a body on its way, both ways; what it returns arrives
            "redirect": None,  # every request is sent on to this address
            "tag": None,  # called with the entity tag of an object; what it returns is listed instead
            "page": 1000,
        }
        unknown = set(behaviour) - set(self.behaviour)
        assert not unknown, f"unknown behaviour {unknown}"
        self.behaviour.update(behaviour)
        self.log = []  # (method, key, query, headers)
        self.lock = threading.Lock()
        self.listen()
        self.environment = {"AWS_ACCESS_KEY_ID": "AKIDTOPSECRET", "AWS_SECRET_ACCESS_KEY": "verysecretkey", "AWS_SESSION_TOKEN": "sessionsecret", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": self.url}

    def count(self, pattern):
        return sum(1 for method, key, query, _ in self.log if re.search(pattern, f"{method} {key} {query}"))

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        path, _, query = request.path.partition("?")
        key = urllib.parse.unquote(path).removeprefix("/bkt").lstrip("/")
        with self.lock:
            number = len(self.log)
            self.log.append((request.command, key, query, dict(request.headers)))
        if self.behaviour["redirect"]:
            return self.send(request, 307, b"", {"Location": self.behaviour["redirect"] + request.path})
        refusal = self.behaviour["fail"] and self.behaviour["fail"](number, request.command, key, query)
        if refusal:
            return self.send(request, refusal[0], f"<Error><Code>{refusal[1]}</Code></Error>".encode(), {"Content-Type": "application/xml"})
        fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if request.command == "GET" and fields.get("list-type") == "2":
            return self.list(request, fields)
        file = self.folder / key
        if request.command == "PUT":
            return self.put(request, file, key, body)
        if request.command == "DELETE":
            if file.is_file():
                file.unlink()
            return self.send(request, 204, b"")
        if request.command != "GET":
            return self.send(request, 403, b"")
        if not file.is_file():
            return self.send(request, 404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self.get(request, file, key)

    def put(self, request, file, key, body):
        if self.behaviour["rewrite"]:
            body = self.behaviour["rewrite"]("PUT", key, body)
        create = request.headers.get("If-None-Match") == "*" or request.headers.get("x-goog-if-generation-match") == "0"
        with self.lock:
            if create and file.exists():
                return self.send(request, 412, b"<Error><Code>PreconditionFailed</Code></Error>")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
        return self.send(request, 200, b"", {"ETag": etag(file)})

    def get(self, request, file, key):
        data = file.read_bytes()
        if self.behaviour["rewrite"]:
            data = self.behaviour["rewrite"]("GET", key, data)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range") or "")
        if not asked:
            return self.send(request, 200, data, {"ETag": etag(file)})
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if first >= len(data):
            return self.send(request, 416, b"<Error><Code>InvalidRange</Code></Error>")
        return self.send(request, 206, data[first : last + 1], {"ETag": etag(file), "Content-Range": f"bytes {first}-{last}/{len(data)}"})

    def list(self, request, fields):
        prefix, after, most = fields["prefix"], fields.get("continuation-token", ""), min(int(fields.get("max-keys", 1000)), self.behaviour["page"])
        folder = self.folder / prefix
        found = [(prefix + p.name, p.stat().st_size, p) for p in (folder.iterdir() if folder.is_dir() else []) if p.is_file()]
        found = sorted((entry for entry in found if entry[0].encode() > after.encode()), key=lambda entry: entry[0].encode())
        page, more = found[:most], len(found) > most
        if self.behaviour["listing"]:
            page = self.behaviour["listing"](page)
        tag = self.behaviour["tag"] or (lambda tag: tag)
        rows = "".join(
            f"<Contents><Key>{html.escape(key)}</Key><LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(file.stat().st_mtime))}</LastModified>"
            f"<ETag>{html.escape(tag(etag(file)))}</ETag><Size>{size}</Size></Contents>"
            for key, size, file in page
        )
        token = "again" if self.behaviour["same_token"] else page[-1][0] if more else None
        following = f"<NextContinuationToken>{html.escape(token)}</NextContinuationToken>" if token else ""
        body = f'<?xml version="1.0"?><ListBucketResult><Name>bkt</Name><Prefix>{html.escape(prefix)}</Prefix><IsTruncated>{"true" if token else "false"}</IsTruncated>{rows}{following}</ListBucketResult>'
        return self.send(request, 200, body.encode(), {"Content-Type": "application/xml"})

    def send(self, request, status, body, headers=None):
        try:
            request.send_response(status)
            for name, value in (headers or {}).items():
                request.send_header(name, value)
            if status != 204:
                request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            request.close_connection = True
