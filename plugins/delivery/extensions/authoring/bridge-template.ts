/** Languages of a new adapter. */
export const LANGUAGES = ['ts', 'python'] as const
export type Language = (typeof LANGUAGES)[number]

/** The library files copied into a new adapter, by language. */
export interface BridgeLibraries {
  /** The library for Node: one module that imports only Node's own modules. */
  readonly node: string
  readonly python: string
}

type Files = Readonly<Record<string, string>> & { readonly 'extension.toml': string }

/** The files of an adapter for a line-based chat over TCP, a working example. */
export function bridgeFiles(
  name: string,
  language: Language,
  libraries: BridgeLibraries,
  packages: Readonly<Record<string, string>>,
): Files {
  const common = {
    'extension.toml': manifestOf(name, language),
    'config.schema.json': SCHEMA,
    'README.md': readmeOf(name, language),
    'main.test.mjs': testOf(name, language === 'python' ? ['python3', 'main.py'] : ['node', 'main.js']),
  }
  if (language === 'python') return { ...common, 'main.py': pythonOf(name), 'svc_bridge.py': libraries.python }
  const about = {
    private: true,
    type: 'module',
    scripts: { check: 'tsc', test: 'svc extension test', build: 'svc extension build' },
    devDependencies: packages,
  }
  return {
    ...common,
    'main.ts': nodeOf(name, true),
    // The module that runs; `svc extension build`, `test` and `dev` bundle it from main.ts where esbuild is installed.
    'main.js': nodeOf(name, false),
    'svc-bridge.js': libraries.node,
    'svc-bridge.d.ts': `export * from 'svc/bridge'\n`,
    'package.json': `${JSON.stringify(about, undefined, 2)}\n`,
    'tsconfig.json': `{ "extends": "./.svc/tsconfig.json", "include": ["**/*.ts"] }\n`,
    '.gitignore': '/.svc\n/node_modules\n*.tar.gz\n',
  }
}

const manifestOf = (name: string, language: Language) => `name = "${name}"
version = "0.1.0"
description = "A chat of lines over TCP"

[capabilities]
provides = ["bridge.adapter"]

[permissions]
requires = ["bridges/instances/report_state", "bridges/messages/ingest"]

[subprocess]
command = "${language === 'python' ? 'python3' : 'node'}"
args = ["{{config_dir}}/main.${language === 'python' ? 'py' : 'js'}"]

[bridge]
platform = "lines"
display_name = "Lines over TCP"
description = "Each connection is a person: nc 127.0.0.1 7070"
# A name that somebody types is no identity: permission questions are not answered here.
authenticates_senders = false
text_limit = 4000
config_schema = "config.schema.json"
`

const SCHEMA = `{
  "type": "object",
  "properties": {
    "port": { "type": "integer", "minimum": 1, "maximum": 65535, "description": "port on 127.0.0.1; default 7070" }
  }
}
`

const readmeOf = (name: string, language: Language) => `# ${name}

A bridge to a chat of lines over TCP. Change \`${language === 'python' ? 'main.py' : 'main.ts'}\` into one to your platform.

    svc extension test
    svc extension install .
    svc bridge create --help
    nc 127.0.0.1 7070
${
  language === 'python'
    ? ''
    : `
\`main.js\` runs. After a change of \`main.ts\`: \`npm install\` once, then \`svc extension test\` or \`svc extension build\`.
`
}`

/** The adapter for Node: TypeScript, or JavaScript when `typed` is false. */
function nodeOf(name: string, typed: boolean): string {
  const t = (types: string) => (typed ? types : '')
  return `import { randomUUID } from 'node:crypto'
import { createServer${t(', type Server, type Socket')} } from 'node:net'
import { createInterface } from 'node:readline'
import { ${t('type Adapter, type Delivery, type DeliveryResult, type Host, type Instance, ')}NotSent, runBridge } from './svc-bridge.js'

/** One instance: a port, at which each connection is a person. */
class Lines${t(' implements Adapter')} {
  ${t('readonly ')}#people = new Map${t('<string, Socket>')}()
  ${t('readonly ')}#server${t(': Server')}
  ${t('readonly ')}#host${t(': Host')}

  constructor(instance${t(': Instance')}, host${t(': Host')}) {
    this.#host = host
    this.#server = createServer(socket => this.#greet(socket))
    this.#server.on('error', error => host.report({ status: 'error', message: error.message }))
    const port = Number(instance.config.port ?? 7070)
    this.#server.listen(port, '127.0.0.1', () => host.report({ status: 'ready' }))
  }

  /** The first line of a connection is a name, every other one a message to the bot. */
  #greet(socket${t(': Socket')}) {
    let name = ''
    socket.on('error', () => {})
    socket.on('close', () => this.#people.get(name) === socket && this.#people.delete(name))
    socket.write('Your name?\\n')
    const lines = createInterface({ input: socket })
    lines.on('error', () => {})
    lines.on('line', line => {
      const text = line.trim()
      if (text === '') return
      if (name !== '') return void this.#take(name, text, socket)
      if (!/^[\\w-]{1,32}$/.test(text) || this.#people.has(text)) return void socket.write('Another name, please.\\n')
      name = text
      this.#people.set(name, socket)
      socket.write(\`Hello, \${name}. Ask something.\\n\`)
    })
  }

  async #take(name${t(': string')}, text${t(': string')}, socket${t(': Socket')}) {
    try {
      const { outcome, reason } = await this.#host.ingest({
        // A platform with ids of its own messages takes those: a repetition is answered once.
        idempotency_key: randomUUID(),
        family: 'message',
        sender: { id: name, username: name, authenticated: false },
        peer_id: name,
        text,
        addressed: true,
      })
      if (outcome === 'ignored') socket.write(\`(not answered: \${reason ?? 'ignored'})\\n\`)
    } catch (error) {
      this.#host.log(\`a message was not taken: \${error}\`)
    }
  }

  async deliver(delivery${t(': Delivery')})${t(': Promise<DeliveryResult>')} {
    const socket = this.#people.get(delivery.target.peer_id ?? '')
    if (!socket) throw new NotSent('unknown_destination', \`\${delivery.target.peer_id} is not connected\`)
    await new Promise${t('<void>')}((resolve, reject) =>
      socket.write(\`\${delivery.text}\\n\`, error => (error ? reject(error) : resolve())),
    )
    return { status: 'delivered', remote_message_id: delivery.nonce }
  }

  targets() {
    return [...this.#people.keys()].map(name => ({ peer_id: name, display_name: name, target_type: 'user' }))
  }

  async close() {
    for (const socket of this.#people.values()) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }
}

await runBridge({ name: '${name}', version: '0.1.0', open: async (instance, host) => new Lines(instance, host) })
process.exit(0)
`
}

const pythonOf = (name: string) => `"""A bridge to a chat of lines over TCP: each connection is a person."""

import re
import socket
import threading
import uuid

from svc_bridge import IngestRefused, NotSent, run_bridge


class Lines:
    """One instance: a port, at which each connection is a person."""

    def __init__(self, instance, host):
        self.host = host
        self.people = {}
        self.server = socket.create_server(("127.0.0.1", int(instance.config.get("port", 7070))))
        threading.Thread(target=self.accept, daemon=True).start()
        host.report("ready")

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.greet, args=(connection,), daemon=True).start()

    def greet(self, connection):
        """The first line of a connection is a name, every other one a message to the bot."""
        name = ""
        try:
            connection.sendall(b"Your name?\\n")
            for line in connection.makefile("r", encoding="utf-8", errors="replace"):
                text = line.strip()
                if not text:
                    continue
                if name:
                    self.take(name, text, connection)
                elif not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", text) or text in self.people:
                    connection.sendall(b"Another name, please.\\n")
                else:
                    name = text
                    self.people[name] = connection
                    connection.sendall(f"Hello, {name}. Ask something.\\n".encode())
        except OSError:
            pass
        finally:
            if self.people.get(name) is connection:
                del self.people[name]
            connection.close()

    def take(self, name, text, connection):
        event = {
            # A platform with ids of its own messages takes those: a repetition is answered once.
            "idempotency_key": str(uuid.uuid4()),
            "family": "message",
            "sender": {"id": name, "username": name, "authenticated": False},
            "peer_id": name,
            "text": text,
            "addressed": True,
        }
        try:
            result = self.host.ingest(event)
            if result["outcome"] == "ignored":
                connection.sendall(f"(not answered: {result.get('reason', 'ignored')})\\n".encode())
        except IngestRefused as error:
            self.host.log(f"a message was not taken: {error}")

    def deliver(self, delivery):
        name = delivery["target"].get("peer_id", "")
        connection = self.people.get(name)
        if connection is None:
            raise NotSent("unknown_destination", f"{name} is not connected")
        connection.sendall((delivery["text"] + "\\n").encode())
        return {"status": "delivered", "remote_message_id": delivery["nonce"]}

    def targets(self):
        return [{"peer_id": name, "display_name": name, "target_type": "user"} for name in list(self.people)]

    def close(self):
        self.server.close()
        for connection in list(self.people.values()):
            connection.close()


run_bridge("${name}", "0.1.0", Lines)
`

/** A test that is the daemon of the process: it takes a message of a person, and delivers an answer. */
const testOf = (name: string, command: readonly string[]) => `import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

test('${name} takes a message, and delivers an answer', async () => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address()
  await new Promise(resolve => free.close(resolve))
  const child = spawn('${command[0]}', ['${command[1]}'], { cwd: import.meta.dirname, stdio: ['pipe', 'pipe', 'inherit'] })
  const say = message => child.stdin.write(\`\${JSON.stringify({ jsonrpc: '2.0', ...message })}\\n\`)
  const answers = new Map()
  const calls = []
  let wake = () => {}
  createInterface({ input: child.stdout }).on('line', line => {
    const message = JSON.parse(line)
    if (message.method === undefined) answers.get(message.id)(message)
    else {
      calls.push(message)
      const { idempotency_key } = message.params
      say({ id: message.id, result: idempotency_key ? { idempotency_key, outcome: 'prompted' } : {} })
    }
    wake()
  })
  const ask = (method, params) =>
    new Promise(resolve => {
      answers.set(method, ({ result, error }) => resolve(error ?? result))
      say({ id: method, method, params })
    })
  const called = async (method, wanted = () => true) => {
    for (;;) {
      const found = calls.find(call => call.method === method && wanted(call.params))
      if (found) return found.params
      await new Promise(resolve => {
        wake = resolve
      })
    }
  }
  const instance = { id: 'b1', display_name: 'Lines', platform: 'lines', provider_config: { port } }
  await ask('initialize', {
    extension: { name: '${name}', version: '0.1.0' },
    capabilities: { provides: ['bridge.adapter'], granted_permissions: [] },
    runtime: { bridge: { managed_instances: [{ instance, bound_secrets: [] }] } },
  })
  await called('bridges/instances/report_state', ({ status }) => status === 'ready')
  const person = connect(port, '127.0.0.1')
  let heard = ''
  person.setEncoding('utf8').on('data', text => {
    heard += text
  })
  person.write('ada\\nhello\\n')
  const { text, peer_id } = await called('bridges/messages/ingest')
  assert.deepEqual([text, peer_id], ['hello', 'ada'])
  const delivery = { bridge_instance_id: 'b1', delivery_id: 'd', part: 0, event: 'final', nonce: 'n1' }
  const sent = await ask('bridges/deliver', { delivery: { ...delivery, target: { peer_id: 'ada' }, text: 'Hello, Ada' } })
  assert.deepEqual(sent, { status: 'delivered', remote_message_id: 'n1' })
  const lost = await ask('bridges/deliver', { delivery: { ...delivery, target: { peer_id: 'bob' }, text: 'Hello' } })
  assert.equal(lost.kind, 'unknown_destination')
  while (!heard.includes('Hello, Ada\\n')) await once(person, 'data')
  const ended = once(child, 'exit')
  await ask('shutdown', { reason: 'stop', deadline_ms: 1000 })
  assert.deepEqual(await ended, [0, null])
  person.destroy()
})
`
