/** The prose of docs/configuration.md; the table of keys is generated from the schemas. */
export const configurationText = `~~~sh
svc config list                       # every key, its value and where that comes from
svc config get log.level
svc config set log.level debug        # log.level: in effect now
svc config set http.port 0            # http.port: written; takes effect with a restart
svc config unset log.level
svc config show http.port             # its layers, and the value that waits for a restart
svc config check                      # is config.json valid, and what waits; needs no daemon
svc config apply-history              # who changed what, and what became of it
~~~

The configuration is \`config.json\` in the home, JSON with comments; a dot in a key is a level. \`svc config set\` changes what you
name and keeps comments, order and indentation of the rest. You may edit the file by hand as well: the daemon follows it. A file that
is not valid changes nothing, starts no daemon and refuses a restart. \`svc config check\` names every mistake with its line: values that
do not match, and keys that nobody knows, with the key that was probably meant. An entry of a map of named things (\`mcp_servers\`,
\`providers\`, \`hooks\`, \`automation.jobs\`, \`automation.triggers\`, \`sandboxes\`, \`tools.toolsets\`) that is not valid costs only itself: it is
not used, and \`svc doctor\` names it. A hook with \`required\` guards something, so it is never left out: the file is refused.

Durations are written \`30s\`, \`5m\` or \`1h30m\`. Settings of an extension stand below \`plugins.<vendor>.<name>\`.

~~~json
@EXAMPLE@
~~~

## Layers

| layer | where | weaker than |
| --- | --- | --- |
| default | this page | all others |
| file | \`config.json\` in the home | overlay, environment |
| overlay | \`.svc/config.json\` of a workspace, for the few keys that allow it | environment |
| environment | variables of the daemon, for the few keys that name one | none |

\`providers\` and \`sandboxes\` are maps of named entries: layers are merged by name, each entry as a whole. Everything else is the
value of the strongest layer.

The files of a workspace have no effect until you trust it: \`svc workspace trust <workspace>\` names the files and trusts them as they
are. A change of one of them asks again.

## When a change takes effect

| class | effect |
| --- | --- |
| \`live\` | at once |
| \`live-add\` | at once: an entry is added |
| \`live-remove-if-unused\` | at once; refused with 409 \`setting_in_use\` while something uses the entry |
| \`session-rebind\` | for sessions that start from then on |
| \`restart-required\` | with the next start of the daemon |

A write of several keys has the strictest class of them. Each write has a record: \`applied\`, \`blocked\` while it waits for a restart, or
\`failed\`. A write that changes nothing has none.

## Variables of the daemon

\`.env\` in the home holds variables of the daemon, one \`NAME=value\` a line; references like \`env:NAME\` find them there. The file must be
readable by its owner alone (\`chmod 600\`), or it is not read. Its values are replaced in logs, events and replies. The environment
that the daemon was started with is stronger. A workspace has no \`.env\`.`.replaceAll('~~~', '```')
