// Proves that no secret leaves the daemon: `npm run prove:vault -- [--canaries N, the full size is 10000] [--seed S]`. Secrets that
// can be recognized are stored through every entry there is, and counted by entry; an agent and an extension tell each of them in one of five encodings, split across writes,
// and requests fail with them. Then none of them may stand in a reply, an event, a stream, a log, a crash bundle, the arguments
// of a process or any file of the home, and the key of the vault in the environment of no child. Exits with 1 when one does. A
// value that is stored before it is hidden, or an encoding that the matcher leaves out, fails it.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type StartedDaemon, startDaemon } from '../../testing/index.js'
import { type Chance, chance as chanceOf } from './library/chance.js'
import { firstSeed } from './library/seed.js'
import { canary, control, controlIn, encodings, inPieces, leakIn } from './vault/canaries.js'
import { INHERITED, variables, writeLeakyExtension } from './vault/leaky-extension.js'

const here = path.dirname(fileURLToPath(import.meta.url))
const AT_ONCE = 32
/** Steps of one turn. */
const TURN = 250
const QUIET_WAYS = ['said', 'thought', 'tool', 'title', 'stderr', 'line'] as const
const MAX_PIECES = 6

const { values } = parseArgs({ options: { canaries: { type: 'string', default: '2000' }, seed: { type: 'string' } } })
const count = Number(values.canaries)
const seed = Number(values.seed ?? firstSeed())
const chance = chanceOf('vault', seed)
const wrong: string[] = []
const look = (where: string, text: string) => {
  const leak = leakIn(text)
  if (leak !== undefined) wrong.push(`${where}: ${leak}`)
}

const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), 'svc-prove-vault-')))
const home = path.join(folder, 'home')
const root = path.join(folder, 'workspace')
const vaultKey = randomBytes(32).toString('base64')
const all = Array.from({ length: count }, (_, at) => canary(chance, at))
const inherited = canary(chance, count)
/** Of 16 variables each: those of the extension, and those of `.env`. */
const GROUP = variables.length
const encodingsInOrder = Object.values(encodings)
const controls = encodingsInOrder.map((_, at) => control(chance, at))
/** How many canaries went in by each entry. */
const planted = new Map<string, number>([['environment of the daemon', 1]])
const note = (entry: string, many = 1) => planted.set(entry, (planted.get(entry) ?? 0) + many)
const dotEnv = path.join(home, '.env')
await writeLeakyExtension(path.join(home, 'extensions', 'leaky'))
await writeFile(path.join(home, 'config.json'), '{ "http": { "port": 0 } }')
for (const place of [root, path.join(home, 'agents/leaky')]) await mkdir(place, { recursive: true })

/** A body of JSON over the socket; the whole reply is looked through. */
async function ask(daemon: StartedDaemon, method: string, url: string, body?: unknown) {
  const reply = await daemon.request(method, url, body)
  look(`${method} ${url.split('?')[0]} ${reply.status}`, JSON.stringify(reply.body ?? ''))
  return reply
}

/** Runs `svc` with a text on its standard input. */
function svc(text: string, ...args: string[]): Promise<void> {
  const program = path.join(here, '../../dist/bin/svc')
  const child = spawn(process.execPath, [program, ...args], { env: { ...process.env, SVC_HOME: home } })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', piece => (out += piece))
  child.stdin.end(text)
  return new Promise(resolve =>
    child.once('close', code => {
      look(`svc ${args[0]} ${args[1]}`, out)
      if (code !== 0) wrong.push(`svc ${args.join(' ')} ended with ${code}: ${out.slice(0, 300)}`)
      resolve()
    }),
  )
}

/** The extension's own, those of agents' providers and servers, and all others over the route; two over the command line. */
async function plant(daemon: StartedDaemon): Promise<void> {
  const own = variables.map((env_name, at) => ({ env_name, value: all[at] }))
  note('.env', GROUP)
  const { status, body } = await ask(daemon, 'PUT', '/api/extensions/leaky/secrets', { bindings: own })
  if (status !== 200) throw new Error(`the secrets of the extension are refused: ${JSON.stringify(body)}`)
  note('secrets of an extension', own.length)
  let next = own.length + GROUP
  await svc(`${all[next++]}\n`, 'vault', 'put', 'vault:mcp/global/leaky/env/TOKEN')
  await svc(all[next++] ?? '', 'vault', 'put', 'vault:providers/local/LEAKY_PROVIDER', '--kind', 'token')
  note('svc vault put', 2)
  for (let at = 0; at < GROUP; at++) await plantSlot(daemon, `leaky-${at}`, all[next++] ?? '')
  const namespaces = ['bridges', 'automation', 'mcp', 'hooks', 'sandbox', 'sessions', 'extensions']
  const lane = async () => {
    while (next < all.length) {
      const at = next++
      const ref = `vault:${namespaces[at % namespaces.length]}/canary/n${at}`
      const { status } = await ask(daemon, 'PUT', '/api/vault/secrets', { ref, secret_value: all[at] })
      if (status !== 200) wrong.push(`PUT of ${ref}: ${status}`)
      note(`route of the vault, ${namespaces[at % namespaces.length]}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

/** The slot of a provider that the configuration has: its value goes to the vault with the entry. */
async function plantSlot(daemon: StartedDaemon, provider: string, value: string): Promise<void> {
  const ref = `vault:providers/${provider}/KEY`
  const slot = { name: 'key', kind: 'api_key', required: true, secret_ref: ref, target_env: 'LEAKY_SLOT' }
  const settings = { command: 'cat', credential_slots: [slot] }
  const body = { settings, secrets: [{ name: 'key', secret_ref: ref, kind: 'api_key', value }] }
  const { status } = await ask(daemon, 'PUT', `/api/settings/providers/${provider}`, body)
  if (status !== 200 && status !== 201) wrong.push(`PUT of the provider ${provider}: ${status}`)
  note('slots of providers')
}

/** The file of variables of the home, which alone may hold what stands in it. */
async function writeDotEnv(): Promise<void> {
  const lines = all.slice(GROUP, 2 * GROUP).map((value, at) => `LEAKY_ENV_${at}=${value}\n`)
  await writeFile(dotEnv, lines.join(''), { mode: 0o600 })
}

const encoded = (value: string, own: Chance) => encodings[own.of(Object.keys(encodings))]?.(value, own) ?? value

async function turn(daemon: StartedDaemon, at: string, steps: readonly unknown[], text: string): Promise<void> {
  const file = path.join(folder, 'steps.json')
  await writeFile(file, JSON.stringify(steps))
  const { body } = await ask(daemon, 'POST', `${at}/prompt`, { text: `${text}\nsteps: ${file}` })
  const id = body.prompt?.new_turn_id
  const end = performance.now() + 60_000
  for (;;) {
    const { body: reply } = await daemon.request('GET', `${at}/events?turn_id=${id}&limit=1000`)
    if (reply.events?.some(({ type }: { type: string }) => type === 'done' || type === 'error')) return
    if (performance.now() > end) throw new Error(`turn ${id} has no end`)
    // The extension fails and waits longer from time to time, so its process is there at some of these looks only.
    lookAtProcesses(daemon)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/** An agent tells every canary once; the last turns end with an error and with a crash. */
async function tellByAgent(daemon: StartedDaemon): Promise<void> {
  const server = `mcp_servers: [{name: leaky, command: node, args: ['-e', '0'], secret_env: {TOKEN: 'vault:mcp/global/leaky/env/TOKEN'}}]`
  const command = `${process.execPath} ${path.join(here, 'vault/leaky-agent.mjs')}`
  const head = `name: leaky\npermissions: approve-all\ncommand: '${command}'\n${server}`
  await writeFile(path.join(home, 'agents/leaky/AGENT.md'), `---\n${head}\n---\nTell.\n`)
  const { body: added } = await ask(daemon, 'POST', '/api/workspaces/resolve', { path: root })
  const { body } = await ask(daemon, 'POST', '/api/sessions', {
    workspace: added.workspace.id,
    agent_name: 'leaky',
    // Its steps lie outside of the workspace.
    sandbox: 'none',
  })
  const at = `/api/workspaces/${added.workspace.id}/sessions/${body.session.id}`
  const stream = await daemon.stream(`${at}/stream`).catch(() => undefined)
  const followed = (async () => {
    if (stream) for await (const event of stream) look('stream of a session', JSON.stringify(event))
  })().catch(() => {})
  for (let from = 0; from < all.length; from += TURN) {
    const steps = all
      .slice(from, from + TURN)
      .map(value => [chance.of(QUIET_WAYS), inPieces(encoded(value, chance), chance, MAX_PIECES)])
    await turn(daemon, at, steps, `I have ${encoded(chance.of(all), chance)} as well.`)
  }
  // The control is told as canaries are, in every encoding: where it is not found, the search would find no canary either.
  const findings = QUIET_WAYS.flatMap(way =>
    controls.map((value, at) => [way, [encodingsInOrder[at]?.(value, chance)]]),
  )
  await turn(daemon, at, findings, 'The control.')
  const { body: last } = await daemon.request('GET', `${at}/events?limit=1000&type=agent_message`)
  if (controlIn(JSON.stringify(last)) === undefined) wrong.push('the control is in no event of the session')
  for (const way of ['error', 'crash'])
    await turn(daemon, at, [[way, [encoded(chance.of(all), chance)]]], `It ends with ${chance.of(all)}.`)
  for (let cursor = 0; ; ) {
    const { body: reply } = await ask(daemon, 'GET', `${at}/events?limit=1000&after=${cursor}`)
    const last = reply.events?.at(-1)?.sequence
    if (last === undefined || last <= cursor) break
    cursor = last
  }
  stream?.close()
  await followed
}

/** Requests that are refused, each with a canary where something is repeated to whoever sent it. */
async function tellByRequests(daemon: StartedDaemon): Promise<void> {
  for (let at = 0; at < Math.min(200, count); at++) {
    const text = encoded(chance.of(all), chance)
    const url = encodeURIComponent(text)
    const tries: readonly (readonly [string, string, unknown?])[] = [
      ['GET', `/api/vault/secrets/metadata?ref=${url}`],
      ['PUT', '/api/vault/secrets', { ref: text, secret_value: text }],
      ['PUT', '/api/vault/secrets', { ref: 'vault:mcp/a/b', secret_value: 'x', [text]: text }],
      ['GET', `/api/sessions/${url}`],
      ['GET', `/api/extensions/${url}`],
      ['GET', `/api/resources/note/${url}`],
      ['GET', `/api/doctor?only=${url}`],
      ['POST', '/api/sessions', { workspace: text, agent_name: text }],
      ['POST', '/api/automation/jobs', { name: text }],
    ]
    await ask(daemon, ...chance.of(tries))
  }
}

/** Every process whose environment says that a daemon of this home started it. */
const children = (): string[] =>
  readdirSync('/proc').filter(
    name => /^\d+$/.test(name) && textOf(`/proc/${name}/environ`)?.includes('SVC_PROCESS_ID='),
  )

/** Processes of the daemon's that were looked at. */
const processes = new Set<string>()
function lookAtProcesses(daemon: StartedDaemon): void {
  for (const pid of [String(daemon.pid), ...children()]) {
    try {
      look(`arguments of process ${pid}`, readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      if (pid === String(daemon.pid)) continue
      processes.add(pid)
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').includes(vaultKey))
        wrong.push(`process ${pid} has the key of the vault`)
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** What a file has; undefined when it is gone, for the daemon renames what it has written, and processes end. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || file.startsWith('/proc/')) return undefined
    throw error
  }
}

let files = 0
/** Folders and files of the home where the control was found. */
const foundControl = new Set<string>()
/** Places in files where a value was hidden. */
let hidden = 0
function lookAtFiles(): void {
  for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = path.join(entry.parentPath, entry.name)
    const text = textOf(file)
    if (text === undefined) continue
    files++
    if (file === dotEnv) continue
    if (controlIn(text) !== undefined) foundControl.add(path.relative(home, file).split(path.sep)[0] ?? '')
    look(path.relative(home, file), text)
    hidden += text.split('[redacted').length - 1
    if (text.includes(vaultKey)) wrong.push(`${path.relative(home, file)} has the key of the vault`)
  }
}

await writeDotEnv()
const began = performance.now()
const daemon = await startDaemon({ home, env: { SVC_VAULT_KEY: vaultKey, [INHERITED]: inherited } })
try {
  await plant(daemon)
  for (const verb of ['disable', 'enable']) await ask(daemon, 'POST', `/api/extensions/leaky/${verb}`)
  await tellByAgent(daemon)
  await tellByRequests(daemon)
  lookAtProcesses(daemon)
  if (processes.size < 2) wrong.push(`only ${processes.size} processes were looked at`)
  for (const url of [
    'status',
    'doctor',
    'plugins',
    'plugins/delivery/extensions',
    'vault/secrets',
    'extensions/leaky',
    'extensions/leaky/logs',
    'extensions/leaky/secrets',
  ])
    await ask(daemon, 'GET', `/api/${url}`)
  await daemon.restart()
  look('the log of the second start', daemon.output)
  const { body } = await ask(daemon, 'GET', '/api/vault/secrets')
  const lost = body.secrets.filter(({ present }: { present: boolean }) => !present).length
  if (body.secrets.length < count - GROUP || lost > 0)
    wrong.push(`${body.secrets.length} of ${count - GROUP} secrets, ${lost} unreadable`)
  lookAtFiles()
  if (hidden < count) wrong.push(`only ${hidden} places in files where a value was hidden: too little was told`)
  if (foundControl.size === 0) wrong.push('the control is in no file of the home')
  if (files < 10) wrong.push(`only ${files} files were looked at`)
  // What finds nothing anywhere proves nothing: the search has to find each encoding of a canary.
  for (const [name, encode] of Object.entries(encodings))
    if (all[0] && leakIn(encode(all[0], chance)) === undefined) wrong.push(`the search does not find ${name}`)
} finally {
  await daemon.stop()
  await rm(folder, { recursive: true, force: true })
}
const seconds = ((performance.now() - began) / 1000).toFixed(1)
console.log(
  `${count} canaries, hidden ${hidden} times in ${files} files, seed ${seed}: ${wrong.length} found, ${seconds} s`,
)
for (const [entry, many] of planted) console.log(`  ${String(many).padStart(6)}  ${entry}`)
console.log(`the control, which is no secret, was found in ${[...foundControl].join(', ')}`)
for (const line of wrong.slice(0, 20)) console.log(`FAIL  ${line}`)
process.exitCode = wrong.length === 0 ? 0 : 1
