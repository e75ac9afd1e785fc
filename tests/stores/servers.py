"""Real object servers, each as it ships: where `scripts/store-servers.sh` put them, how they are started, and how the command reaches them.

Every server answers: target (an address to check), environment (what the command needs), close().
"""

import base64
import datetime
import hashlib
import hmac
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import command
import hosts


def home():
    """The folder of the installed servers; installing is idempotent and takes a second when done."""
    script = command.ROOT / "scripts" / "store-servers.sh"
    return pathlib.Path(subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.child.poll() is None, f"the server ended:\n{''.join(process.text)}"
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on {port}:\n{''.join(process.text)}")


class Server:
    """A child process that listens on a port of its own."""

    kind = None  # what --store says, where the address does not tell

    def __init__(self, servers, folder):
        self.servers, self.folder, self.port = servers, folder, free_port()
        self.process = hosts.Process(self.arguments(), env={**command.clean_environment(), **self.child_environment()})
        wait_for_port(self.port, self.process)
        self.environment = {}
        self.target = f"http://127.0.0.1:{self.port}/t.lance"
        self.prepare()

    def child_environment(self):
        return {}

    def prepare(self):
        """What is needed once the server listens."""

    def close(self):
        self.process.close()


class S3Like(Server):
    keys = ("testing", "testing")

    def prepare(self):
        self.environment = {
            "AWS_ACCESS_KEY_ID": self.keys[0],
            "AWS_SECRET_ACCESS_KEY": self.keys[1],
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }
        self.target = "s3://bkt/t.lance"


class Snailmail(S3Like):
    """moto behind a switch for the three behaviours of stores; one request at a time, as moto looks and writes in two steps."""

    keys = ("snailmail", "snailmail")
    mode = "enforce"

    def arguments(self):
        code = (
            "import sys, threading, time, snailmail\n"
            f"store = snailmail.ObjectStore(behavior=snailmail.StoreBehavior(conditional_writes={self.mode!r}), port={self.port}, bucket='bkt')\n"
            "app, turn = store.middleware.app, threading.Lock()\n"
            "def one_at_a_time(environ, start_response):\n"
            "    with turn:\n"
            "        return app(environ, start_response)\n"
            "store.middleware.app = one_at_a_time\n"
            "store.start()\nprint('ready', flush=True)\ntime.sleep(3600)\n"
        )
        return [str(self.servers / "venv/bin/python"), "-c", code]


class SnailmailIgnore(Snailmail):
    mode = "ignore"


class SnailmailReject(Snailmail):
    mode = "reject"


class S3rver(S3Like):
    keys = ("S3RVER", "S3RVER")

    def arguments(self):
        return ["node", str(self.servers / "node_modules/s3rver/bin/s3rver.js"), "-d", str(self.folder), "-a", "127.0.0.1", "-p", str(self.port), "--configure-bucket", "bkt", "--silent"]


class RcloneS3(S3Like):
    def arguments(self):
        (self.folder / "bkt").mkdir()
        return [str(self.servers / "venv/bin/rclone"), "serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key", "testing,testing", str(self.folder)]


class Azurite(Server):
    """The account and key are those every emulator of Azure has; they are in Microsoft's documentation."""

    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    kind = "azure"

    def arguments(self):
        main = self.servers / "node_modules/azurite/dist/src/blob/main.js"
        return ["node", str(main), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", str(self.folder), "--skipApiVersionCheck", "--disableTelemetry", "--silent"]

    def sas(self, start=-3600, expiry=3600):
        now = datetime.datetime.now(datetime.timezone.utc)
        times = [(now + datetime.timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%SZ") for s in (start, expiry)]
        fields = {"sv": "2021-08-06", "ss": "b", "srt": "sco", "sp": "rwdlac", "st": times[0], "se": times[1], "spr": "https,http"}
        text = "\n".join([self.account, fields["sp"], fields["ss"], fields["srt"], fields["st"], fields["se"], "", fields["spr"], fields["sv"], "", ""])
        signature = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return urllib.parse.urlencode({**fields, "sig": base64.b64encode(signature).decode()})

    def prepare(self):
        base = f"http://127.0.0.1:{self.port}/{self.account}/tables"
        urllib.request.urlopen(urllib.request.Request(f"{base}?restype=container&{self.sas()}", method="PUT", data=b""), timeout=30).read()
        self.environment = {"AZURE_STORAGE_SAS_TOKEN": self.sas()}
        self.target = f"{base}/t.lance"


class Nginx(Server):
    def arguments(self):
        root = self.servers / "root"
        module = next(root.rglob("ngx_http_dav_ext_module.so"))
        data, work = self.folder / "data", self.folder / "work"
        data.mkdir()
        work.mkdir()
        (self.folder / "nginx.conf").write_text(
            f"""load_module {module};
daemon off; worker_processes 2; error_log {work}/error.log; pid {work}/pid; {"user root;" if os.getuid() == 0 else ""}
events {{}}
http {{
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi; uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
  access_log off;
  server {{
    listen 127.0.0.1:{self.port};
    root {data};
    client_max_body_size 100m;
    location / {{ dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; create_full_put_path on; }}
  }}
}}
"""
        )
        return [str(root / "usr/sbin/nginx"), "-p", str(work), "-c", str(self.folder / "nginx.conf")]


class Apache(Server):
    modules = ["mpm_event", "authz_core", "authz_host", "dav", "dav_fs", "mime"]

    def child_environment(self):
        # Its workers load a driver of their own as another user, who may not see the cache.
        library = next((self.servers / "root").rglob("libapr-1.so.0")).parent
        copy = self.folder / "lib"
        if not copy.exists():
            shutil.copytree(library, copy)
        return {"LD_LIBRARY_PATH": str(copy)}

    def arguments(self):
        root = self.servers / "root"
        data, work = self.folder / "data", self.folder / "work"
        for folder in (data, work):
            folder.mkdir()
            folder.chmod(0o777)
        for folder in [self.folder, *self.folder.parents]:  # its workers run as somebody else
            if os.getuid() == 0 and str(folder).startswith("/tmp/"):
                folder.chmod(folder.stat().st_mode | 0o011)
        loads = "\n".join(f"LoadModule {name}_module {root}/usr/lib/apache2/modules/mod_{name}.so" for name in self.modules)
        user = "User www-data\nGroup www-data" if os.getuid() == 0 else ""
        (self.folder / "httpd.conf").write_text(
            f"""{loads}
ServerRoot {work}
ServerName localhost
PidFile {work}/pid
ErrorLog {work}/error.log
Listen 127.0.0.1:{self.port}
TypesConfig /dev/null
Mutex file:{work} default
{user}
DavLockDB {work}/locks
DocumentRoot {data}
<Directory {data}>
  Dav On
  Require all granted
</Directory>
"""
        )
        return [str(root / "usr/sbin/apache2"), "-f", str(self.folder / "httpd.conf"), "-DFOREGROUND"]
