"""The process of an adapter that does what a test tells it: by its argument, and by the text of a message that it delivers."""
import json
import os
import sys
import threading

ways = json.loads(sys.argv[1])
lock = threading.Lock()
waiting = {}
bridge = {}
sets = 0
asked = 0


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method, params):
    """Asks the daemon; the answer goes to the log and, as an event of its own, back to the test."""
    global asked
    asked += 1
    done = threading.Event()
    answer = {}
    waiting[f"c{asked}"] = (done, answer)
    send({"id": f"c{asked}", "method": method, "params": params})
    done.wait(20)
    return answer


def event(instance, key, **more):
    return {
        "bridge_instance_id": instance,
        "idempotency_key": key,
        "family": "message",
        "sender": {"id": "u1", "authenticated": True},
        "peer_id": "u1",
        "text": "hello",
        "addressed": True,
        **more,
    }


def deliver(delivery):
    instance = delivery["bridge_instance_id"]
    word, _, rest = delivery["text"].partition(" ")
    if word == "exit":
        os._exit(3)
    if word == "garbage":
        return json.loads(rest)
    if word == "throw":
        raise ValueError("no idea, s3cret-value")
    if word == "ack":
        return {"remote_message_id": "m1"}
    if word == "ingest":
        answer = ask("bridges/messages/ingest", event(instance, "k1", **json.loads(rest or "{}")))
        return {"status": "unknown", "message": json.dumps(answer)}
    if word == "report":
        answer = ask("bridges/instances/report_state", {"bridge_instance_id": instance, **json.loads(rest or "{}")})
        return {"status": "unknown", "message": json.dumps(answer)}
    if word == "rejected":
        report = {"bridge_instance_id": instance, "status": "failed", **json.loads(rest or "{}")}
        return {"status": "unknown", "message": json.dumps(ask("bridges/deliveries/report", report))}
    if word == "about":
        about = {"bridge": bridge, "pid": os.getpid(), "sets": sets}
        return {"status": "unknown", "message": json.dumps(about)[:3900]}
    return {"status": "delivered", "remote_message_id": f"m-{delivery['nonce']}"}


def begin(calls):
    """Calls the daemon for each of its instances, and tells its log what came of it."""
    for managed in bridge["managed_instances"]:
        for method, params in calls:
            about = {"bridge_instance_id": managed["instance"]["id"]} if method.startswith("bridges/") else {}
            got = ask(method, {**about, **params})
            print(f"{method}: {json.dumps(got)}", file=sys.stderr, flush=True)
    print(f"began: {json.dumps(bridge)}", file=sys.stderr, flush=True)


def answer(method, params):
    global bridge, sets
    if method == "initialize":
        bridge = params["runtime"].get("bridge", {})
        if ways.get("at") == "exit":
            os._exit(4)
        if bridge.get("purpose") in ways.get("begins", {}):
            threading.Timer(0.05, begin, [ways["begins"][bridge["purpose"]]]).start()
        capabilities = params["capabilities"]
        more = ["bridges/instances/set"] if ways.get("set") else []
        return {
            "protocol_version": "1",
            "extension_info": {"name": params["extension"]["name"], "version": params["extension"]["version"]},
            "accepted_capabilities": {
                "provides": capabilities["provides"],
                "permissions": capabilities["granted_permissions"],
            },
            "implemented_methods": [
                "health_check", "shutdown", "bridges/deliver", "bridges/targets/snapshot", *more, *ways.get("more", []),
            ],
        }
    if method == "health_check":
        return {"healthy": True}
    if method == "shutdown":
        threading.Timer(0.01, lambda: os._exit(0)).start()
        return {"acknowledged": True}
    if method == "bridges/instances/set":
        if ways["set"] == "throw":
            raise ValueError("not now")
        sets += 1
        bridge = {**bridge, "managed_instances": params["managed_instances"]}
        return {}
    if method == "bridges/deliver":
        return deliver(params["delivery"])
    if method == "bridges/verify" and ways.get("hangs"):
        threading.Event().wait()
    if method in ways.get("answers", {}):
        return ways["answers"][method]
    raise ValueError(f"unknown: {method}")


def handle(message):
    try:
        send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
    except Exception as error:  # noqa: BLE001
        send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        threading.Thread(target=handle, args=(message,), daemon=True).start()
        continue
    done, kept = waiting.pop(message["id"])
    kept.update({name: message[name] for name in ("result", "error") if name in message})
    done.set()
