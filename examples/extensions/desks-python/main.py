"""An extension as a process in Python, with the standard library alone.

A line of JSON in, a line of JSON out; what is for people goes to standard error.
"""

import json
import pathlib
import sys

DESKS = pathlib.Path(__file__).with_name("desks.txt")


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def layout(name, scope):
    """A record of kind window_layout: one empty desktop of this name."""
    layout_id = "desks-" + name.lower().replace(" ", "-")
    desktop = {"id": "desk", "name": name, "order": 0, "purpose": "standard", "floating": [], "groups": []}
    document = {"version": 2, "workspace_id": "", "desktops": [desktop], "windows": {}, "overrides": {}}
    spec = {
        "version": 1,
        "id": layout_id,
        "display_name": name,
        "aspect": "any",
        "overflow": "stack",
        "document": document,
    }
    return {"kind": "window_layout", "id": layout_id, "scope": {"kind": scope}, "spec": spec}


class Extension:
    def __init__(self):
        self.published = None
        self.version = 0
        self.trouble = None
        self.scope = "global"

    def publish(self):
        """Publishes all there is when it is not what was published: a snapshot is always the whole."""
        names = [line.strip() for line in DESKS.read_text().splitlines() if line.strip()]
        if names == self.published:
            return
        self.published = names
        self.version += 1
        params = {"source_version": self.version, "records": [layout(name, self.scope) for name in names]}
        send(id=self.version, method="resources/snapshot", params=params)

    def answered(self, message):
        self.trouble = message.get("error", {}).get("message")
        print("published" if self.trouble is None else self.trouble, file=sys.stderr, flush=True)

    def initialize(self, params):
        capabilities = params["capabilities"]
        # Linked to a workspace it may publish there alone, and need not say where that is.
        self.scope = "global" if "global" in capabilities["granted_resource_scopes"] else "workspace"
        return {
            "protocol_version": params["protocol_version"],
            "extension_info": {"name": params["extension"]["name"], "version": params["extension"]["version"]},
            "accepted_capabilities": {
                "provides": capabilities["provides"],
                "permissions": capabilities["granted_permissions"],
            },
            "implemented_methods": ["health_check", "shutdown"],
            "supported_hook_events": [],
            "supports": {"health_check": True},
        }

    def health_check(self, _params):
        return {"healthy": self.trouble is None, "message": self.trouble or ""}

    def shutdown(self, _params):
        return {"acknowledged": True}


extension = Extension()
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        extension.answered(message)
        continue
    method = message["method"]
    send(id=message["id"], result=getattr(extension, method)(message["params"]))
    if method == "shutdown":
        break
    # After the greeting, and at every look at its health: the file may have changed.
    extension.publish()
