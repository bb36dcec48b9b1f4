"""The library of bridge adapters in Python: the protocol of processes, in one file, with the standard library alone.

    from svc_bridge import NotSent, run_bridge

    class Chat:
        def __init__(self, instance, host): ...
        def deliver(self, delivery): ...      # {"status": "delivered", "remote_message_id": "…"}, or raise NotSent
        def targets(self): return []
        def close(self): ...

    run_bridge("acme.chat", "1.0.0", Chat)

What an adapter prints goes to standard error, which is its log; it must print no secret. A method `settle(delivery, since)`,
`verify()` or `register_webhook()` is called where the adapter has it.
"""

import json
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PROTOCOL = "1"
LONGEST_LINE = 8 * 1024 * 1024
#: Seconds for which the key of an event is remembered.
REMEMBERED = 300
MOST_REMEMBERED = 10_000
#: Files that the daemon takes with one event.
MOST_FILES = 10
#: Reasons for which an event is sent again until it is taken.
NOT_NOW = {"bridge_not_accepting", "too_many_requests", "rate_limited", "not_initialized"}
METHODS = [
    "health_check",
    "shutdown",
    "bridges/deliver",
    "bridges/targets/snapshot",
    "bridges/instances/set",
    "bridges/settle",
    "bridges/verify",
    "bridges/webhook/register",
]


class NotSent(Exception):
    """A message was surely not sent. kind: unknown_destination, missing_token, permission_denied, unsupported_capability or
    transient_delivery_failure, which alone is tried again."""

    def __init__(self, kind, message, permanent=None, retry_after_ms=None):
        super().__init__(message)
        self.kind = kind
        self.permanent = kind != "transient_delivery_failure" if permanent is None else permanent
        self.retry_after_ms = retry_after_ms

    def result(self):
        retry = {} if self.retry_after_ms is None else {"retry_after_ms": self.retry_after_ms}
        return {"status": "not_sent", "permanent": self.permanent, "kind": self.kind, "message": str(self), **retry}


class InstanceProblem(Exception):
    """The configuration or a secret of an instance does not do. status: auth_required, degraded or error."""

    def __init__(self, status, message, reason=None):
        super().__init__(message)
        self.state = {"status": status, "message": message, **({} if reason is None else {"reason": reason})}


class IngestRefused(Exception):
    """The daemon does not take an event, now or later."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class RpcError(Exception):
    """An error that the daemon answered; code is its stable name."""

    def __init__(self, error):
        super().__init__(str(error.get("message", "an error without a text")))
        data = error.get("data") if isinstance(error.get("data"), dict) else {}
        self.code = str(data.get("code", ""))
        retry = data.get("retry_after_ms")
        self.retry_after = retry / 1000 if isinstance(retry, (int, float)) else None


class Instance:
    """A bridge instance, as the daemon hands it over."""

    def __init__(self, managed):
        about = managed["instance"]
        self.id = about["id"]
        self.display_name = about.get("display_name", "")
        self.platform = about.get("platform", "")
        self.workspace_id = about.get("workspace_id")
        self.dm_policy = about.get("dm_policy", "open")
        self.config = about.get("provider_config", {})
        self._secrets = {one["binding_name"]: one["value"] for one in managed.get("bound_secrets", [])}

    def secret(self, slot):
        """The value that is bound to a slot of the manifest, or None."""
        return self._secrets.get(slot)


def _bounded(event):
    """An event that fits into a line of the protocol: files beyond it are named in the text instead."""
    files = event.get("attachments") or []
    rest = {name: value for name, value in event.items() if name != "attachments"}
    kept, missing = [], []
    # Some room is for the request around the event, and for the words that stand for files.
    left = LONGEST_LINE - 4096 - 2048 * len(files) - _size(rest)
    for file in files:
        size = _size(file) + 2
        if len(kept) >= MOST_FILES:
            why = f"a message has at most {MOST_FILES} files"
        elif size > left:
            why = "with it the message would be longer than 8 MiB"
        else:
            left -= size
            kept.append(file)
            continue
        missing.append(f"[The file {file['name']} is not attached: {why}.]")
    if not missing:
        return event
    return {**rest, "text": "\n".join([one for one in [event.get("text"), *missing] if one]), "attachments": kept}


def _size(value):
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


class Host:
    """The daemon, as one instance sees it."""

    def __init__(self, connection, instance_id, purpose="service"):
        self._connection = connection
        self._id = instance_id
        self._known = {}
        self._lock = threading.Lock()
        self._reports = ThreadPoolExecutor(1)
        #: "control": the instance is open for a check alone, and no event of it is taken; otherwise "service".
        self.purpose = purpose
        #: Set when the instance is closed.
        self.closed = threading.Event()

    def report(self, status, message=None, reason=None, webhook_public_url=None):
        """Reports the state of the instance; reports arrive in their order."""
        state = {"status": status, "message": message, "reason": reason, "webhook_public_url": webhook_public_url}
        params = {"bridge_instance_id": self._id, **{name: value for name, value in state.items() if value is not None}}
        self._reports.submit(self._repeat, "bridges/instances/report_state", params)

    def ingest(self, event):
        """Hands an event to the daemon and returns what became of it, once that is durable: only then the platform may be told that
        the event was seen. One that is refused for now is sent again. Raises IngestRefused."""
        key = event["idempotency_key"]
        with self._lock:
            now = time.monotonic()
            for old in [one for one, (_, at) in self._known.items() if now - at > REMEMBERED]:
                del self._known[old]
            while len(self._known) >= MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
            if key in self._known and self._known[key][0] is not None:
                return self._known[key][0]
        result = self._repeat("bridges/messages/ingest", {"bridge_instance_id": self._id, **_bounded(event)})
        with self._lock:
            self._known[key] = (result, time.monotonic())
        return result

    def report_delivery(self, remote_message_id, reason):
        """Tells the daemon that a message did not arrive which the platform had taken; returns "recorded" or "unknown". The manifest
        has to require bridges/deliveries/report. Raises IngestRefused."""
        report = {"remote_message_id": remote_message_id, "status": "failed", "reason": reason[:4000]}
        return self._repeat("bridges/deliveries/report", {"bridge_instance_id": self._id, **report})["outcome"]

    def get_value(self, key):
        """A value that put_value has kept, or None. The manifest has to require state/get and state/put. Raises IngestRefused."""
        return self._repeat("state/get", {"key": f"{self._id}/{key}"})["value"]

    def put_value(self, key, value):
        """Keeps a value of at most 64 KiB as JSON, which outlasts the process; returns once it is durable. Raises IngestRefused."""
        self._repeat("state/put", {"key": f"{self._id}/{key}", "value": value})

    def log(self, text):
        """Writes a line to the log of the extension. It must hold no secret."""
        print(f"{self._id}: {text}", file=sys.stderr, flush=True)

    def _repeat(self, method, params):
        for attempt in range(1_000_000):
            try:
                return self._connection.request(method, params)
            except RpcError as error:
                if error.code not in NOT_NOW:
                    self.log(f"{method}: {error.code}: {error}")
                    raise IngestRefused(error.code, str(error)) from error
                pause = error.retry_after if error.retry_after is not None else min(15, 0.2 * 2 ** min(attempt, 10))
                if self.closed.wait(pause * random.uniform(1, 1.25)):
                    raise IngestRefused("bridge_closed", "the instance is closed") from error
        raise IngestRefused("bridge_closed", "given up")


class Connection:
    """JSON-RPC 2.0 over standard input and output, a message a line, requests in both directions at once."""

    def __init__(self, answer):
        self._answer = answer
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        # What the adapter prints is no part of the protocol.
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._waiting = {}
        self._asked = 0

    def send(self, **message):
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n"
        with self._lock:
            try:
                self._out.write(line)
                self._out.flush()
            except (BrokenPipeError, ValueError):
                os._exit(0)

    def request(self, method, params, timeout=90):
        done = threading.Event()
        kept = {}
        with self._lock:
            self._asked += 1
            number = self._asked
            self._waiting[number] = (done, kept)
        self.send(id=number, method=method, params=params)
        if not done.wait(timeout):
            self._waiting.pop(number, None)
            raise RpcError({"message": f"no answer to {method}", "data": {"code": "bridge_not_accepting"}})
        if "error" in kept:
            raise RpcError(kept["error"])
        return kept.get("result")

    def serve(self):
        """Reads until the daemon is gone."""
        pool = ThreadPoolExecutor(16)
        for line in sys.stdin:
            if len(line) > LONGEST_LINE:
                return
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                done, kept = self._waiting.pop(message.get("id"), (None, None))
                if done is not None:
                    kept.update({name: message[name] for name in ("result", "error") if name in message})
                    done.set()
            elif message["method"] in ("initialize", "health_check", "shutdown"):
                self._handle(message)
            elif "id" in message:
                pool.submit(self._handle, message)

    def _handle(self, message):
        try:
            answer = {"result": self._answer(message["method"], message.get("params") or {})}
        except Exception as error:  # noqa: BLE001
            answer = {"error": {"code": -32000, "message": str(error) or type(error).__name__}}
        if "id" in message:
            self.send(id=message["id"], **answer)


class _Served:
    def __init__(self, name, version, open_instance):
        self._about = {"name": name, "version": version, "sdk_name": "svc_bridge.py"}
        self._open = open_instance
        self._running = {}
        self._purpose = "service"
        self._lock = threading.RLock()
        self._connection = Connection(self.answer)

    def run(self):
        try:
            self._connection.serve()
        finally:
            self.set([])
            os._exit(0)

    def answer(self, method, params):
        if method == "initialize":
            return self.initialize(params)
        if method == "health_check":
            return {"healthy": True}
        if method == "shutdown":
            threading.Thread(target=self._end, daemon=True).start()
            return {"acknowledged": True}
        if method == "bridges/instances/set":
            self.set(params.get("managed_instances", []))
            return {}
        if method == "bridges/deliver":
            return self.deliver(params["delivery"])
        if method == "bridges/settle":
            delivery = params["delivery"]
            settle = getattr(self.adapter(delivery), "settle", None)
            return settle(delivery, params["since"]) if settle else {"outcome": "unknown"}
        if method == "bridges/targets/snapshot":
            return {"targets": self.adapter(params).targets()}
        if method == "bridges/verify":
            verify = getattr(self.adapter(params), "verify", None)
            return {"checks": verify() if verify else []}
        if method == "bridges/webhook/register":
            register = getattr(self.adapter(params), "register_webhook", None)
            return register() if register else {"check": "webhook", "status": "skipped", "remediation": ""}
        raise ValueError(f"no method {method}")

    def initialize(self, params):
        capabilities = params.get("capabilities", {})
        bridge = params.get("runtime", {}).get("bridge", {})
        instances = bridge.get("managed_instances", [])
        self._purpose = bridge.get("purpose", "service")
        # The answer goes first: the daemon takes no report before.
        threading.Timer(0.05, self.set, [instances]).start()
        return {
            "protocol_version": PROTOCOL,
            "extension_info": self._about,
            "accepted_capabilities": {
                "provides": capabilities.get("provides", []),
                "permissions": capabilities.get("granted_permissions", []),
            },
            "implemented_methods": METHODS,
            "supports": {"health_check": True},
        }

    def deliver(self, delivery):
        try:
            return self.adapter(delivery).deliver(delivery) or {"status": "delivered"}
        except NotSent as error:
            return error.result()

    def adapter(self, params):
        found = self._running.get(params["bridge_instance_id"])
        if found is None or found[1] is None:
            raise NotSent("transient_delivery_failure", "the instance is not open")
        return found[1]

    def set(self, managed):
        """Opens instances that are new or changed, and closes those that are not there any more."""
        with self._lock:
            wanted = {one["instance"]["id"]: one for one in managed}
            for known, (text, adapter, host) in list(self._running.items()):
                if known in wanted and text == json.dumps(wanted[known], sort_keys=True):
                    continue
                del self._running[known]
                host.closed.set()
                self._close(adapter)
            for new, one in wanted.items():
                if new in self._running:
                    continue
                host = Host(self._connection, new, self._purpose)
                try:
                    adapter = self._open(Instance(one), host)
                except InstanceProblem as problem:
                    adapter = None
                    host.report(**problem.state)
                except Exception as error:  # noqa: BLE001
                    adapter = None
                    host.report("error", message=str(error) or type(error).__name__)
                self._running[new] = (json.dumps(one, sort_keys=True), adapter, host)

    def _close(self, adapter):
        try:
            if adapter is not None:
                adapter.close()
        except Exception as error:  # noqa: BLE001
            print(f"close: {error}", file=sys.stderr, flush=True)

    def _end(self):
        # The answer goes out first.
        time.sleep(0.05)
        self.set([])
        os._exit(0)


def run_bridge(name, version, open_instance):
    """Serves the daemon on standard input and output until it asks to shut down or is gone."""
    _Served(name, version, open_instance).run()
