"""Hooks that the process of an extension answers, in Python with the standard library alone.

A line of JSON in, a line of JSON out; what is for people goes to standard error.
"""

import json
import shlex
import sys


def removes(words):
    """Whether a command removes whole folders without asking."""
    flags = "".join(word[1:] for word in words[1:] if word.startswith("-") and not word.startswith("--"))
    recursive = "r" in flags.lower() or "--recursive" in words
    return bool(words) and words[0].rsplit("/", 1)[-1] == "rm" and recursive and ("f" in flags or "--force" in words)


def guard(payload):
    """An agent asks whether it may do something."""
    command = payload.get("command") or payload.get("title") or ""
    try:
        words = shlex.split(command)
    except ValueError:
        return {"deny": True, "reason": "a command that cannot be read"}
    if any(removes(words[at:]) for at, word in enumerate(words) if word.rsplit("/", 1)[-1] == "rm"):
        return {"deny": True, "reason": "rm -rf is not for agents"}
    return None


def preview(payload):
    """An agent has the daemon run a command: it sees what would go, and nothing goes."""
    call = payload.get("input") or {}
    words = [call.get("command", ""), *call.get("args", [])]
    if not removes(words):
        return None
    return {"input": {**call, "command": "ls", "args": ["-d", "--", *(w for w in words[1:] if not w.startswith("-"))]}}


HOOKS = {"permission.request": guard, "tool.pre_call": preview}


def initialize(params):
    capabilities = params["capabilities"]
    return {
        "protocol_version": params["protocol_version"],
        "extension_info": {"name": params["extension"]["name"], "version": params["extension"]["version"]},
        "accepted_capabilities": {
            "provides": capabilities["provides"],
            "permissions": capabilities["granted_permissions"],
        },
        "implemented_methods": ["health_check", "shutdown"],
        "supported_hook_events": list(HOOKS),
        "supports": {"health_check": True},
    }


METHODS = {
    "initialize": initialize,
    "health_check": lambda _: {"healthy": True},
    "shutdown": lambda _: {"acknowledged": True},
    "hooks/execute": lambda params: {"patch": HOOKS[params["event"]](params["payload"])},
}

for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = METHODS[message["method"]](message["params"])
    except Exception as error:  # What is wrong is told, and the process goes on.
        reply["error"] = {"code": -32000, "message": repr(error)}
    print(json.dumps(reply), flush=True)
    if message["method"] == "shutdown":
        break
