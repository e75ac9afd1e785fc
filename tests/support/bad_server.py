"""A scripted HTTP object server that misbehaves on purpose.

Without options it is an ordinary WebDAV-like server for a folder: GET and HEAD with ranges, depth-1 PROPFIND, PUT with If-None-Match.
Every misbehaviour is one keyword; `log` holds (method, path, range) of every request.
"""

import gzip
import html
import pathlib
import re
import threading
import time
import urllib.parse

from scripted import Scripted


class BadServer(Scripted):
    """with BadServer(folder, ranges=False) as server: … server.url"""

    def __init__(self, folder, **behaviour):
        self.folder = pathlib.Path(folder)
        self.behaviour = {
            "ranges": True,  # False: every GET answers 200 with everything
            "status_200": False,  # ranged GETs answer 200 with Content-Range and only the slice (rclone does)
            "encode": False,  # True: answers are the gzip stream's bytes, marked Content-Encoding (mod_deflate does)
            "encode_marked": True,
            "etag": '"{size:x}-{mtime:x}"',  # None: no ETag; a W/ one is a weak one
            "content_range": True,  # False: 206 without Content-Range
            "content_length": True,
            "fail": {},  # pattern of "METHOD path" -> list of statuses, one per matching request, then normal
            "always": {},  # pattern -> status, for ever
            "delay": 0.0,  # seconds before every answer
            "listing": True,
            "cut": None,  # pattern -> number of body bytes after which the connection breaks
            "sizes": {},  # pattern of a path -> size the listing claims
            "before": None,  # called with (method, path) before every answer
            "wrong_range": False,  # 206 of another range than was asked for
            "everything": None,  # bytes answered with 200 to whatever is asked
        }
        unknown = set(behaviour) - set(self.behaviour)
        assert not unknown, f"unknown behaviour {unknown}"
        self.behaviour.update(behaviour)
        self.log = []
        self.lock = threading.Lock()
        self.listen()

    def count(self, pattern):
        return sum(1 for method, path, _ in self.log if re.search(pattern, f"{method} {path}"))

    def scripted_status(self, what):
        for pattern, statuses in self.behaviour["fail"].items():
            if re.search(pattern, what):
                with self.lock:
                    if statuses:
                        return statuses.pop(0)
        for pattern, status in self.behaviour["always"].items():
            if re.search(pattern, what):
                return status
        return None

    def answer(self, request):
        behaviour = self.behaviour
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length)
        path = urllib.parse.unquote(request.path.split("?")[0])
        self.log.append((request.command, path, request.headers.get("Range")))
        if behaviour["before"]:
            behaviour["before"](request.command, path)
        time.sleep(behaviour["delay"])
        if behaviour["everything"] is not None:
            return self.send(request, 200, behaviour["everything"], {"Content-Type": "text/html"})
        status = self.scripted_status(f"{request.command} {path}")
        if status is not None:
            headers = {"Content-Range": "bytes */0"} if status == 416 else {}
            return self.send(request, status, b"scripted\n", headers)
        file = self.folder / path.lstrip("/")
        if request.command == "PROPFIND":
            return self.propfind(request, file, path)
        if request.command == "PUT":
            return self.put(request, file, body)
        if request.command == "DELETE":
            file.unlink(missing_ok=True)
            return self.send(request, 204, b"")
        if request.command not in ("GET", "HEAD"):
            return self.send(request, 405, b"")
        if not file.is_file():
            return self.send(request, 404, b"no such object\n")
        return self.get(request, file)

    def get(self, request, file):
        behaviour, data, headers = self.behaviour, file.read_bytes(), {"Content-Type": "application/octet-stream"}
        if behaviour["etag"]:
            headers["ETag"] = behaviour["etag"].format(size=len(data), mtime=file.stat().st_mtime_ns)
        if behaviour["encode"]:
            data = gzip.compress(data, 1)
            if behaviour["encode_marked"]:
                headers["Content-Encoding"] = "gzip"
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range") or "")
        if not asked or not behaviour["ranges"]:
            return self.send(request, 200, data, headers, file)
        first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
        if first >= len(data):
            return self.send(request, 416, b"", {"Content-Range": f"bytes */{len(data)}"})
        if behaviour["wrong_range"]:
            first, last = first + 1, last + 1
        if behaviour["content_range"]:
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self.send(request, 200 if behaviour["status_200"] else 206, data[first : last + 1], headers, file)

    def put(self, request, file, body):
        if request.headers.get("If-None-Match") == "*" and file.exists():
            return self.send(request, 412, b"")
        file.parent.mkdir(parents=True, exist_ok=True)
        with self.lock:
            if request.headers.get("If-None-Match") == "*" and file.exists():
                return self.send(request, 412, b"")
            file.write_bytes(body)
        return self.send(request, 201, b"")

    def propfind(self, request, folder, path):
        if not self.behaviour["listing"]:
            return self.send(request, 405, b"")
        if not folder.exists():
            return self.send(request, 404, b"")
        entries = [folder, *(sorted(folder.iterdir()) if folder.is_dir() else [])]
        rows = []
        for entry in entries:
            href = urllib.parse.quote("/" + str(entry.relative_to(self.folder))) + ("/" if entry.is_dir() else "")
            claimed = next((size for pattern, size in self.behaviour["sizes"].items() if re.search(pattern, href)), entry.stat().st_size)
            kind = "<D:resourcetype><D:collection/></D:resourcetype>" if entry.is_dir() else f"<D:resourcetype/><D:getcontentlength>{claimed}</D:getcontentlength>"
            rows.append(
                f"<D:response><D:href>{html.escape(href)}</D:href><D:propstat><D:prop>{kind}"
                f"<D:getlastmodified>{time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(entry.stat().st_mtime))}</D:getlastmodified>"
                "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            )
        body = f'<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">{"".join(rows)}</D:multistatus>'
        return self.send(request, 207, body.encode(), {"Content-Type": "application/xml"})

    def send(self, request, status, body, headers=None, file=None):
        cut = None
        if self.behaviour["cut"] and file is not None:
            cut = next((at for pattern, at in self.behaviour["cut"].items() if re.search(pattern, str(file))), None)
        try:
            request.send_response(status)
            for name, value in (headers or {}).items():
                request.send_header(name, value)
            if self.behaviour["content_length"] and status not in (204, 304):
                request.send_header("Content-Length", str(len(body)))
            else:
                request.send_header("Connection", "close")
                request.close_connection = True
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(body if cut is None else body[:cut])
            if cut is not None:
                request.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            request.close_connection = True
