// The page's side of the engine worker: what happens to calls when it is aborted, silent or crashed.
import assert from "node:assert/strict";
import test from "node:test";
import { pageModules } from "../support/page_modules.mjs";

class FakeWorker {
  static all = [];
  sent = [];
  ended = false;
  constructor() {
    FakeWorker.all.push(this);
  }
  postMessage(message) {
    this.sent.push(message);
  }
  terminate() {
    this.ended = true;
  }
  say(message) {
    this.onmessage({ data: message });
  }
}
globalThis.Worker = FakeWorker;

const { EngineClient, failureOf } = await pageModules("engine/client");

const crash = { code: "ENGINE_CRASHED", message: "unreachable", detail: {}, changed: "nothing" };
const failed = (promise) => promise.then(() => assert.fail("it was answered"), (error) => failureOf(error));
const fresh = () => {
  FakeWorker.all = [];
  return new EngineClient();
};

test("answers, progress and request counts find their way", async () => {
  const client = fresh();
  const seen = [];
  const counts = [];
  client.onRequests = (c) => counts.push(c);
  const call = client.call("run", { handle: 1 }, { progress: (event) => seen.push(event.rows) });
  const [worker] = FakeWorker.all;
  worker.say({ type: "requests", counts: { count: 2, bytes: 5 } });
  worker.say({ type: "progress", id: worker.sent[0].id, event: { rows: 7 } });
  worker.say({ type: "progress", id: 999, event: { rows: 8 } });
  worker.say({ type: "answer", id: worker.sent[0].id, value: "done" });
  assert.equal(await call, "done");
  assert.deepEqual([seen, counts], [[7], [{ count: 2, bytes: 5 }]]);
  assert.equal(FakeWorker.all.length, 1);
});

test("a crash ends the worker, fails what it owed, and the next call starts another with new handles", async () => {
  const client = fresh();
  const before = client.generation;
  const run = failed(client.call("run", { handle: 1 }));
  const plan = failed(client.call("plan", { handle: 1 }));
  const [worker] = FakeWorker.all;
  worker.say({ type: "failed", id: worker.sent[0].id, error: crash });
  assert.equal((await run).code, "ENGINE_CRASHED");
  assert.equal((await plan).code, "ENGINE_CRASHED");
  assert.ok(worker.ended);
  assert.notEqual(client.generation, before, "handles of the ended worker are known to be gone");
  const next = client.call("open", {});
  assert.equal(FakeWorker.all.length, 2);
  FakeWorker.all[1].say({ type: "answer", id: FakeWorker.all[1].sent[0].id, value: "open" });
  assert.equal(await next, "open");
});

test("a worker that dies by itself is a crash of which the outcome of a run is not known", async () => {
  const client = fresh();
  const run = failed(client.call("run", { handle: 1 }));
  const plan = failed(client.call("plan", { handle: 1 }));
  FakeWorker.all[0].onerror({ preventDefault() {}, message: "out of memory" });
  assert.deepEqual([(await run).code, (await run).changed], ["ENGINE_CRASHED", "unknown"]);
  assert.equal((await plan).changed, "nothing");
});

test("an aborted plan is rejected at once; an aborted run says what the engine says", async () => {
  const client = fresh();
  const control = new AbortController();
  const plan = failed(client.call("plan", { handle: 1 }, { signal: control.signal }));
  const run = failed(client.call("run", { handle: 1 }, { signal: control.signal }));
  control.abort();
  assert.equal((await plan).code, "ABORTED");
  const [worker] = FakeWorker.all;
  assert.deepEqual(worker.sent.filter((m) => m.type === "abort").length, 2);
  const { id } = worker.sent.find((m) => m.name === "run");
  worker.say({ type: "failed", id, error: { code: "ABORTED", message: "two files are left", detail: {}, changed: "staged" } });
  assert.equal((await run).message, "two files are left");
  assert.equal(worker.ended, false, "the engine goes on");
});

test("an aborted run that nobody answers ends with its worker", { timeout: 20_000 }, async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const client = fresh();
  const control = new AbortController();
  const run = failed(client.call("run", { handle: 1 }, { signal: control.signal }));
  control.abort();
  t.mock.timers.tick(10_000);
  const error = await run;
  assert.deepEqual([error.code, error.changed], ["ABORTED", "unknown"]);
  assert.ok(FakeWorker.all[0].ended);
});
