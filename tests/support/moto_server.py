"""moto's server, answering one request at a time: it looks and writes in two steps, and on a busy machine lets two racing writers create one object."""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import MotoRequestHandler
from werkzeug.serving import run_simple

application = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    with turn:
        return application(environ, start_response)


run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
