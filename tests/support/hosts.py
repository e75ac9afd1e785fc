"""Where a table can live in the tests: behind `whetstone serve --writable`, behind an S3 endpoint, or in a folder.

All hosts answer the same four questions: put(local folder) -> target, fetch(target) -> local folder,
what environment the command needs, and what store options the browser needs.
"""

import pathlib
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid

import boto3
import botocore.config
import botocore.exceptions

import command


class Process:
    """A child process whose output is drained in the background, ended by its own id."""

    def __init__(self, arguments, env=None):
        self.lines = queue.Queue()
        self.text = []
        self.child = subprocess.Popen(
            arguments, env=env or command.clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        for line in self.child.stdout:
            self.text.append(line)
            self.lines.put(line)

    def wait_for(self, pattern, timeout=60):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.child.poll() is not None and self.lines.empty():
                break
            try:
                found = re.search(pattern, self.lines.get(timeout=0.1))
            except queue.Empty:
                continue
            if found:
                return found
        raise AssertionError(f"no line like {pattern!r} from the server:\n{''.join(self.text)}")

    def close(self):
        self.child.terminate()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def copy(source, target):
    """Copies file contents with default permissions (fixtures may be read-only)."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder in [target, *pathlib.Path(target).rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)


class ServeHost:
    """Tables behind our own object endpoint."""

    name = "serve"

    def __init__(self, folder, writable=True):
        self.folder = pathlib.Path(folder)
        self.process = Process(["node", str(command.COMMAND), "serve", str(self.folder), "--port", "0", *(["--writable"] if writable else [])])
        self.url = self.process.wait_for(r"(http://(?:127\.0\.0\.1|localhost):\d+)").group(1)
        self.environment = {}
        self.store = {}

    def put(self, source):
        name = f"{uuid.uuid4().hex[:8]}.lance"
        copy(source, self.folder / name)
        return f"{self.url}/tables/{name}"

    def local(self, target):
        """The folder behind the target; Lance works on it in place."""
        return str(self.folder / target.rsplit("/", 1)[1])

    def sync(self, target):
        """Nothing to do: Lance wrote where we read."""

    def close(self):
        self.process.close()


class FolderHost:
    """Tables in a plain folder, read through Node's file system."""

    name = "folder"
    environment = {}

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def put(self, source):
        target = self.folder / f"{uuid.uuid4().hex[:8]}.lance"
        copy(source, target)
        return str(target)

    def local(self, target):
        return target

    def sync(self, target):
        """Nothing to do: Lance wrote where we read."""


class S3Host:
    """Tables in a bucket of moto's server. Lance works on a local copy, which is carried over and back."""

    name = "s3"
    bucket = "whetstone-tests"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self.process = Process([sys.executable, str(pathlib.Path(__file__).with_name("moto_server.py")), str(port)])
        self.keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        self.client = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", config=botocore.config.Config(retries={"max_attempts": 1}), **self.keys
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client.create_bucket(Bucket=self.bucket)
                break
            except botocore.exceptions.EndpointConnectionError:
                if time.monotonic() > deadline:
                    raise AssertionError(f"moto did not start:\n{''.join(self.process.text)}") from None
                time.sleep(0.1)
        self.client.put_bucket_cors(
            Bucket=self.bucket,
            CORSConfiguration={
                "CORSRules": [
                    {
                        "AllowedOrigins": ["*"],
                        "AllowedMethods": ["GET", "PUT", "DELETE", "HEAD", "POST"],
                        "AllowedHeaders": ["*"],
                        "ExposeHeaders": ["ETag", "Content-Range", "Content-Length", "Last-Modified"],
                    }
                ]
            },
        )
        self.environment = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }
        self.store = {"kind": "s3", "endpoint": self.endpoint, "region": "us-east-1", "accessKeyId": "testing", "secretAccessKey": "testing"}

    def put(self, source):
        name = f"{uuid.uuid4().hex[:8]}.lance"
        copy(source, self.folder / name)
        target = f"s3://{self.bucket}/tables/{name}"
        self.sync(target)
        return target

    def _keys(self, target):
        prefix = target.removeprefix(f"s3://{self.bucket}/") + "/"
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return {entry["Key"].removeprefix(prefix) for page in pages for entry in page.get("Contents", [])}

    def local(self, target):
        """Brings what the bucket has and the local copy lacks, and returns the local copy. Lance's files never change once written."""
        folder = self.folder / target.rsplit("/", 1)[1]
        prefix = target.removeprefix(f"s3://{self.bucket}/")
        for key in self._keys(target):
            if not (folder / key).exists():
                (folder / key).parent.mkdir(parents=True, exist_ok=True)
                body = self.client.get_object(Bucket=self.bucket, Key=f"{prefix}/{key}")["Body"].read()
                (folder / key).write_bytes(body)
        return str(folder)

    def sync(self, target):
        """Carries what Lance wrote into the bucket."""
        folder = self.folder / target.rsplit("/", 1)[1]
        prefix = target.removeprefix(f"s3://{self.bucket}/")
        there = self._keys(target)
        local = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
        for key in sorted(local.keys() - there):
            self.client.put_object(Bucket=self.bucket, Key=f"{prefix}/{key}", Body=local[key].read_bytes())
        for key in there - local.keys():
            self.client.delete_object(Bucket=self.bucket, Key=f"{prefix}/{key}")

    def close(self):
        self.process.close()
