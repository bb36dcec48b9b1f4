// proof, timeout: 300s (starts daemons)
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, type Running, until } from './installed.js'

const GARBAGE = Buffer.from([0, 255, 1, ...Buffer.from('{"not": json\0')])
const PATIENCE_MS = 120_000
const shelf = new URL('../../examples/extensions/acme.shelf', import.meta.url).pathname
const AGENT = '---\nname: scripted\ncommand: /bin/cat\n---\nGo.\n'
const SKILL = '---\nname: greet\ndescription: Greets people\n---\nSay hello.\n'

/** A home that a daemon has used and closed. */
const at = new Installed()
const test = suite('damaged files')

test.before(async () => {
  at.writeHome('agents/scripted/AGENT.md', AGENT)
  at.writeHome('agents/whole/AGENT.md', AGENT.replace('scripted', 'whole'))
  at.writeHome('skills/greet/SKILL.md', SKILL)
  cpSync(shelf, join(at.home, 'extensions', 'acme.shelf'), { recursive: true })
  const daemon = await start()
  await ask('PUT', '/api/vault/secrets', { ref: 'vault:network/one', secret_value: 'a value of a secret' })
  await ask('POST', '/api/backups', {})
  await end(daemon)
})
test.after(() => at.remove())

async function start(): Promise<Running> {
  const daemon = at.start(['daemon', 'start', '--foreground'])
  await daemon.shows(/daemon is ready/, PATIENCE_MS)
  return daemon
}

async function end(daemon: Running): Promise<void> {
  daemon.child.kill('SIGTERM')
  await daemon.ended
}

// biome-ignore lint/suspicious/noExplicitAny: the body of any reply
async function ask(method: string, url: string, body?: unknown): Promise<any> {
  const { status, text } = await at.request('socket', method, url, body)
  assert.ok(status < 300, `${method} ${url}: ${status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

/** Puts garbage into files, and back what they held. */
async function damaged(files: readonly string[], during: () => Promise<void>): Promise<void> {
  const before = files.map(name => [join(at.home, name), readIfThere(join(at.home, name))] as const)
  for (const [file] of before) {
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, GARBAGE)
  }
  try {
    await during()
  } finally {
    for (const [file, bytes] of before) {
      if (bytes) writeFileSync(file, bytes)
      else rmSync(file, { force: true })
    }
  }
}

const readIfThere = (file: string) => (existsSync(file) ? readFileSync(file) : undefined)

test('damaged files that can be rebuilt prevent no start, and no data is lost', async () => {
  const files = [
    'daemon.json',
    'operator.token',
    'svc.db-mark',
    'stop-asked.json',
    'logs/svc.log',
    'logs/liveness.jsonl',
  ]
  const derived = ['cache/commands.json', 'cache/manifests.json', 'cache/reserve', 'backups/checks.json']
  await damaged([...files, ...derived, 'restarts/op_1.json'], async () => {
    const daemon = await start()
    try {
      const { secrets } = await ask('GET', '/api/vault/secrets?prefix=vault%3Anetwork%2F')
      assert.is(secrets.length, 1)
      assert.is((await ask('GET', '/api/backups')).backups.length, 1)
      assert.is((await at.request('tcp', 'GET', '/api/status')).status, 200, 'with the token that the daemon made')
      assert.match(await at.svc('db', 'verify'), /0 damaged/)
      await extensionIs('active')
    } finally {
      await end(daemon)
    }
  })
})

test('an unreadable definition is named by the doctor, and its neighbours work', async () => {
  const files = ['agents/scripted/AGENT.md', 'skills/greet/SKILL.md', 'extensions/acme.shelf/extension.toml']
  await damaged(files, async () => {
    const daemon = await start()
    try {
      // Extensions are loaded after the daemon is ready.
      const items = await until(
        async () => {
          const report = await ask('GET', '/api/doctor?quiet=true')
          return report.items.some(({ code }: { code: string }) => code === 'extension_outdated')
            ? report.items
            : undefined
        },
        PATIENCE_MS,
        () => 'the doctor names the extension',
      )
      const messages = new Map(items.map((item: { code: string; message: string }) => [item.code, item.message]))
      for (const [code, file] of [
        ['agent_invalid', 'agents/scripted/AGENT.md'],
        ['skill_invalid', 'skills/greet'],
        // Its code that started last runs.
        ['extension_outdated', 'acme.shelf'],
      ] as const)
        assert.match(String(messages.get(code)), file, code)
      const { agents } = await ask('GET', '/api/agents')
      assert.ok(agents.some(({ name }: { name: string }) => name === 'whole'))
    } finally {
      await end(daemon)
    }
  })
})

test('a start refuses a damaged config.json, daemon.lock or svc.db with a code and next step, and changes nothing', async () => {
  for (const [name, reason, next] of [
    ['config.json', 'config_invalid', /edit .*config\.json, line 1/],
    ['daemon.lock', 'lock_file_damaged', /remove it when no daemon is running/],
    ['svc.db', 'store_damaged', /restore a backup/],
    ['restoring.json', 'restore_unfinished', /svc backup restore <file>/],
  ] as const)
    await damaged([name], async () => {
      const { code, stderr } = await at.run(['daemon', 'start'])
      assert.is(code, 1, stderr)
      assert.match(stderr, `reason: ${reason}\n`, name)
      assert.match(stderr, next, name)
      assert.equal(readFileSync(join(at.home, name)), GARBAGE, name)
    })
  await end(await start())
})

async function extensionIs(wanted: string): Promise<void> {
  let state = ''
  await until(
    async () => {
      state = (await ask('GET', '/api/extensions/acme.shelf')).extension.state
      return state === wanted || undefined
    },
    PATIENCE_MS,
    () => `acme.shelf is ${wanted}, not ${state}`,
  )
}

test.run()
