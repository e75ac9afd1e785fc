"""What every scripted server has in common: a listener on a free port of this machine that hands each request to `answer`."""

import http.server
import threading


class Scripted:
    """with Server(...) as server: … server.url. Subclasses call `listen` when they are ready and have `answer(self, request)`."""

    def listen(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                owner.answer(self)

            do_HEAD = do_PUT = do_PROPFIND = do_DELETE = do_OPTIONS = do_POST = do_MKCOL = do_GET

        class Listener(http.server.ThreadingHTTPServer):
            request_queue_size = 128  # twelve writers come at once
            daemon_threads = True

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
