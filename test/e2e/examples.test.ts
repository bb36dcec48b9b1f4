// proof, timeout: 180s: a whole daemon, and every command of the command line
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { exampleOf } from '../../cli/commands/example.js'
import { runCli } from '../cli/fake-daemon.js'
import { data, dist, entries, wordsOf } from '../cli/tree.js'
import { agentOnPath } from './agent-on-path.js'
import { Installed, until } from './installed.js'

// The example of each command is run as it stands, in one home, in an order in which what it names exists.

const at = new Installed()
const test = suite('examples in --help')
let folder = ''
let env: Record<string, string> = {}
const ran = new Set<string>()

test.before(() => {
  folder = at.makeRepository('project')
  env = { ...at.env, PATH: agentOnPath(at.folder), SVC_BIN_DIR: '' }
  const files = {
    'job.json': JSON.stringify({
      name: 'tidy',
      agent_name: 'report',
      prompt: 'Report',
      schedule: { mode: 'every', interval: '1d' },
    }),
    'config.json': '{}',
    'SOUL.md': 'You are curious.\n',
    'HEARTBEAT.md': '---\nenabled: true\n---\nLook at what is open.\n',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
})
test.after(() => at.remove())

/** No example takes longer, however busy the machine is. */
const mostMs = 30_000

async function svc(
  argv: readonly string[],
  signal: AbortSignal = AbortSignal.timeout(mostMs),
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  // In this process, for there are many; those that start the daemon take it from beside them, and tests look at timers.
  if (/^(?:daemon|run|init|extension test)\b/.test(argv.join(' '))) return at.run(argv, folder, env)
  return runCli(at.home, argv, { data, root: dist, cwd: folder, env, signal })
}

/** What a command that only prepares something prints. */
async function prepare(command: string): Promise<string> {
  const { code, stdout, stderr } = await svc(wordsOf(command).slice(1))
  assert.is(code, 0, `${command}: ${stdout}${stderr}${at.logTail()}`)
  return stdout
}

/** Runs the examples of these commands; `ids` stand for the values that only a daemon can give. */
async function examples(paths: readonly string[], ids: readonly string[] = []): Promise<void> {
  for (const path of paths) {
    const entry = entries.find(entry => entry.path === path)
    if (entry === undefined) throw new Error(`there is no command ${path}`)
    ran.add(path)
    const words = wordsOf(exampleOf(entry)).slice(1)
    let next = 0
    const argv = words.map(word => (/_0{15}1$/.test(word) ? (ids[next++] ?? word) : word))
    const { code, stdout, stderr } = await svc(argv)
    assert.is(code, 0, `svc ${argv.join(' ')}: ${stdout}${stderr}${at.logTail()}`)
    assert.not.match(stdout + stderr, /undefined|\[object Object\]/, path)
  }
}

/** Runs the example of a command that goes on until Ctrl-C, which is pressed when it has said something. */
async function endless(path: string): Promise<void> {
  const entry = entries.find(entry => entry.path === path)
  const stop = new AbortController()
  const argv = wordsOf(entry ? exampleOf(entry) : '').slice(1)
  const late = AbortSignal.timeout(mostMs)
  const signal = AbortSignal.any([stop.signal, late])
  const { code, stdout, stderr } = await runCli(at.home, argv, {
    ...{ data, root: dist, cwd: folder, env, signal },
    onOutput: () => stop.abort(),
  })
  assert.is(code, 130, stdout + stderr)
  assert.not(late.aborted, `nothing was said by ${path}`)
  ran.add(path)
}

test('examples of the home, the daemon and its records work', async () => {
  await examples(['init', 'version', 'completion', 'daemon start', 'status', 'doctor', 'logs', 'inbox'])
  await examples(['workspace add', 'workspace list', 'workspace info', 'workspace edit', 'plugin list', 'plugin show'])
  await examples(['provider list', 'provider info', 'provider auth status', 'db status', 'db checkpoint', 'db verify'])
  await examples(['logs events', 'support bundle'])
  await examples(['resource put', 'resource get', 'resource list', 'resource delete', 'drain', 'undrain'])
})

test('examples of agents and their files work', async () => {
  await examples(['agent create', 'agent list', 'agent info', 'agent update', 'agent duplicate'])
  for (const which of ['soul', 'heartbeat'])
    await examples(['write', 'validate', 'inspect', 'history'].map(verb => `agent ${which} ${verb}`))
  await prepare('svc session new --agent scout')
  await examples(['session soul refresh', 'agent heartbeat status', 'agent heartbeat wake'])
  for (const which of ['soul', 'heartbeat']) {
    const list = JSON.parse(await prepare(`svc agent ${which} history scout --json`))
    await examples([`agent ${which} rollback`], [list.revisions.at(-1).id])
    await examples([`agent ${which} delete`])
  }
  await prepare('svc session stop @last')
  await examples(['agent delete'])
})

test('examples of sessions work', async () => {
  await examples(['run', 'session new', 'session list'])
  await prepare('svc session new')
  await examples(['session prompt', 'session wait'])
  await endless('session attach')
  await prepare("svc session prompt @last 'hang' --no-wait")
  const queued = JSON.parse(await prepare("svc session prompt @last 'say more' --no-wait --json"))
  await examples(['session input list', 'session steer'])
  await examples(['session input remove'], [queued.prompt.queue_entry_id])
  for (const verb of ['info', 'status', 'health', 'rename', 'usage', 'interactions', 'inspect'])
    await examples([`session ${verb}`])
  await examples(['session cancel', 'session wait', 'session events', 'session history', 'session transcript'])
  const options = ['allow_once', 'reject_once'].map(kind => ({ optionId: kind, name: kind, kind }))
  const ask = { toolCall: { toolCallId: 'c', kind: 'execute', rawInput: { command: 'ls' } }, options }
  assert.is((await svc(['session', 'prompt', '@last', `ask ${JSON.stringify(ask)}`, '--no-wait'])).code, 0)
  await until(
    async () => JSON.parse(await prepare('svc inbox --json')).items.length || undefined,
    60_000,
    () => 'a question',
  )
  await examples(['session approve', 'session wait'])
  // Only what the daemon ended can go on.
  for (const verb of ['stop', 'start']) await prepare(`svc daemon ${verb}`)
  await examples(['session resume', 'session stop', 'session repair', 'session remove'])
})

test('examples of jobs work', async () => {
  await examples(
    ['create', 'list', 'get', 'update', 'disable', 'enable', 'trigger'].map(verb => `automation jobs ${verb}`),
  )
  await examples(['automation jobs history', 'automation runs list', 'automation runs get', 'automation jobs delete'])
})

test('examples of extensions and bundles work', async () => {
  await examples(['init', 'validate', 'test', 'build', 'install', 'list', 'info'].map(verb => `extension ${verb}`))
  await examples(
    ['commands', 'verify', 'provenance', 'inventory', 'logs', 'reload', 'update'].map(v => `extension ${v}`),
  )
  await examples(['disable', 'preview', 'enable', 'remove'].map(verb => `extension ${verb}`))
  await endless('extension dev')
  cpSync(
    fileURLToPath(new URL('../../examples/extensions/release-kit', import.meta.url)),
    join(folder, 'release-kit'),
    {
      recursive: true,
    },
  )
  await prepare('svc extension install ./release-kit')
  await examples(['bundle catalog', 'bundle preview', 'bundle activate', 'bundle list', 'bundle network-settings'])
  const { activations } = JSON.parse(await prepare('svc bundle list --json'))
  for (const verb of ['get', 'update', 'deactivate']) await examples([`bundle ${verb}`], [activations[0].id])
})

test('examples of desktops, windows and layouts work', async () => {
  await examples(['desktop list', 'desktop clients', 'window open'])
  await prepare('svc window open session --id right --instance second')
  await examples(
    ['focus', 'navigate', 'resize', 'swap', 'zoom', 'float', 'float', 'group'].map(verb => `window ${verb}`),
  )
  await examples(['desktop create', 'desktop update', 'desktop reorder', 'window move', 'window close'])
  await prepare('svc window close left')
  await examples(['desktop delete'])
  for (const id of ['left', 'right']) await prepare(`svc window open session --id ${id} --instance ${id}`)
  await examples(['layout arrange', 'layout balance', 'layout undo', 'layout redo', 'layout get'])
  writeFileSync(join(folder, 'layout.json'), await prepare('svc layout get'))
  await examples(['validate', 'preview', 'apply', 'export', 'list'].map(verb => `layout ${verb}`))
})

test('examples of the network work', async () => {
  await examples(['network identity', 'network remote', 'network peer add', 'network peer keys', 'network peer remove'])
  await examples(['create', 'list', 'show', 'update'].map(verb => `network channels ${verb}`))
  await examples(['network send', 'network status', 'network peers list', 'network usage', 'network inbox'])
  await examples(['network subscribe', 'network subscriptions', 'network unsubscribe', 'network threads list'])
  await endless('network watch')
  await examples(['network share', 'network shared list', 'network unshare'])
  for (const verb of ['coordination enable', 'coordination disable', 'coordination status', 'invitation dismiss'])
    await examples([`network ${verb}`])
  await examples(['network invitation reset'])
})

test('examples of every other command are called correctly', async () => {
  const last = ['workspace remove', 'daemon stop']
  // They read a value from standard input, which the test has none of.
  const asking = ['vault put', 'bridge secret-bindings put']
  const others = entries.filter(({ path }) => ![...ran, ...last, ...asking].includes(path))
  for (const entry of others) {
    const { code, stderr } = await svc(wordsOf(exampleOf(entry)).slice(1), AbortSignal.timeout(30_000))
    assert.ok(code !== 2 && !/code: (?:internal|command_failed)/.test(stderr), `${exampleOf(entry)}: ${stderr}`)
  }
  const left = await prepare('svc session list --state active --quiet')
  for (const id of left.split('\n').filter(Boolean)) await prepare(`svc session stop ${id}`)
  await examples(last)
})

test.run()
