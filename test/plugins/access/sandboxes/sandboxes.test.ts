// timeout: 120s
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refusalOf } from '../../../../plugins/access/sandboxes/refusal.js'
import { auth, identity, sandboxes } from '../../../../plugins/index.js'
import type { NewSession } from '../../../../plugins/work/sessions/api.js'
import { AGENT, agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'

const test = suite<{ world: World }>('sandboxes')

test.before(async context => {
  const world = await openWorld({
    plugins: [auth, identity, sandboxes],
    listen: ['socket'],
    config: {
      sandboxes: {
        offline: { backend: 'bubblewrap', network: { allow_outbound: false }, env: { OFFLINE: 'yes' } },
        cloud: { backend: 'daytona' },
        listed: { backend: 'bubblewrap', network: { allow_list: ['example.com'] } },
      },
    },
  })
  await world.agent('ada')
  await world.agent('bob', { permissions: 'approve-reads' })
  context.world = world
})
test.after(({ world }) => world.close())

/** Runs a command in a terminal of a session and returns what it said. */
async function run(world: World, at: string, script: string): Promise<string> {
  const command = JSON.stringify({ command: 'sh', args: ['-c', script] })
  const steps = [`call terminal/create ${command}`, 'terminal terminal/wait_for_exit', 'terminal terminal/output']
  const line = agentText(await world.prompt(at, steps.join('\n')))
    .split('\n')
    .find(text => text.startsWith('terminal/output: '))
  return JSON.parse(line?.slice('terminal/output: '.length) ?? '{}').output
}

const create = (world: World, body: object) =>
  world.kernel.request('POST', '/api/sessions', { workspace: world.workspaceId, agent_name: 'bob', ...body })

test('a session with approve-all runs in a sandbox, and one that asks does not', async ({ world }) => {
  const { id, at } = await world.session('ada')
  const { sandbox } = await world.row(id)
  assert.equal([sandbox.backend, sandbox.profile, sandbox.state], ['bubblewrap', 'default', 'prepared'])
  assert.match(agentText(await world.prompt(at, 'pid')), /pid [1-9]\b/)
  assert.is((await world.row(id)).sandbox.state, 'running')
  const asking = await world.session('bob')
  assert.is((await world.row(asking.id)).sandbox, undefined)
})

test('the sandbox contains the workspace, without the home, other temporary files and other processes', async ({
  world,
}) => {
  const { at } = await world.session('ada')
  assert.is(await run(world, at, 'pwd; touch made; ls'), `${world.root}\nmade\n`)
  assert.ok(existsSync(path.join(world.root, 'made')))
  assert.is(await run(world, at, `ls -A ${world.home}`), 'run\n')
  assert.equal((await run(world, at, `ls -A ${path.dirname(world.home)}`)).match(/svc-\w+-\w+/g)?.length, 2)
  assert.is(
    await run(world, at, 'cat /proc/[0-9]*/comm | sort -u | grep -v -e sh -e node -e bwrap -e cat -e sort -e grep'),
    '',
  )
  assert.match(await run(world, at, 'touch /usr/x /etc/x 2>&1'), /Read-only/)
  assert.match(await run(world, at, 'f=/proc/sys/vm/swappiness; cat $f > $f 2>&1'), /Read-only/)
})

test('a workspace in a folder of /dev is visible and writable in the sandbox', async ({ world }) => {
  const root = realpathSync(mkdtempSync('/dev/shm/sandboxed-'))
  try {
    cpSync(path.join(world.root, '.svc', 'agents'), path.join(root, '.svc', 'agents'), { recursive: true })
    const added = await world.kernel.request('POST', '/api/workspaces', { root_dir: root })
    const { id } = added.body.workspace
    const session = await world.session('ada', { workspace: id })
    const at = `/api/workspaces/${id}/sessions/${session.id}`
    assert.is(await run(world, at, 'pwd; touch made; ls; ls /dev/shm'), `${root}\nmade\n${path.basename(root)}\n`)
    assert.ok(existsSync(path.join(root, 'made')))
    await world.kernel.request('DELETE', at)
  } finally {
    rmSync(root, { recursive: true })
  }
})

test('files that could run code outside later are read-only in the sandbox or set aside', async ({ world }) => {
  mkdirSync(path.join(world.root, '.claude'), { recursive: true })
  writeFileSync(path.join(world.root, '.claude/settings.json'), '{}')
  const { id, at } = await world.session('ada')
  assert.match(await run(world, at, 'echo x 2>&1 > .svc/config.json'), /Read-only/)
  assert.match(await run(world, at, 'echo x > .claude/settings.json'), /Read-only/)
  assert.match(await run(world, at, 'mv .claude other 2>&1'), /busy/)
  await run(world, at, 'mkdir -p .git/hooks && echo x > .git/hooks/post-checkout && echo x > .mcp.json')
  await world.kernel.request('POST', `${at}/stop`)
  assert.is(existsSync(path.join(world.root, '.git/hooks')), false)
  assert.is(existsSync(path.join(world.root, '.mcp.json')), false)
  assert.is(readFileSync(path.join(world.root, `.git/hooks.discarded-${id}/post-checkout`), 'utf8'), 'x\n')
  assert.ok(readdirSync(world.root).includes(`.mcp.json.discarded-${id}`))
})

test('the target of the agent script is visible, unless the agent can write the script', async ({ world }) => {
  const folder = await temporaryFolder('wrapped')
  const script = (file: string, ...words: string[]) => {
    writeFileSync(file, `#!/bin/sh\nexec '${words.join("' '")}' "$@"\n`, { mode: 0o755 })
    return file
  }
  // As npm has it: a link in a folder that is shown whole.
  mkdirSync(path.join(folder, 'node_modules/.bin'), { recursive: true })
  const target = script(path.join(folder, 'node_modules/agent'), process.execPath, AGENT)
  const inner = path.join(folder, 'node_modules/.bin/inner')
  symlinkSync(target, inner)
  await world.agent('wrapped', { command: script(path.join(folder, 'outer'), inner) })
  assert.match(agentText(await world.prompt((await world.session('wrapped')).at, 'pid')), /pid [1-9]/)
  await world.agent('own', { command: script(path.join(world.root, 'own.sh'), inner) })
  const events = await world.prompt((await world.session('own')).at, 'pid')
  assert.match(events.find(({ type }) => type === 'error')?.content.error, /startup_failure.*inner/s)
  rmSync(folder, { recursive: true })
  for (const name of ['wrapped', 'own']) rmSync(path.join(world.root, '.svc/agents', name), { recursive: true })
})

test('a profile sets the network and the variables', async ({ world }) => {
  const { id, at } = await world.session('ada', { sandbox: 'offline' })
  assert.equal((await world.row(id)).sandbox.provider_state_json, { network: 'none' })
  assert.is(await run(world, at, 'echo $OFFLINE; tail -n +3 /proc/net/dev | cut -d: -f1'), 'yes\n    lo\n')
})

test('an unavailable requested sandbox refuses the session', async ({ world }) => {
  for (const [sandbox, code, why] of [
    ['nothing', 'sandbox_profile_not_found', /no sandbox profile nothing/],
    ['cloud', 'sandbox_unusable', /only bubblewrap/],
    ['listed', 'sandbox_unusable', /cannot be enforced/],
  ] as const) {
    const { status, body } = await create(world, { sandbox })
    assert.equal([status, body.code], [422, code])
    assert.match(body.error, why)
  }
  assert.is((await create(world, { sandbox: 'default' })).body.session.sandbox.profile, 'default')
  assert.is((await create(world, { agent_name: 'ada', sandbox: 'none' })).body.session.sandbox, undefined)
})

/** A machine where bubblewrap does not work. */
async function withoutBubblewrap(config: object, use: (world: World) => Promise<void>) {
  const folder = await temporaryFolder('bin')
  const bwrap = path.join(folder, 'bwrap')
  writeFileSync(bwrap, '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2; exit 1\n', {
    mode: 0o755,
  })
  const before = process.env.PATH
  process.env.PATH = `${folder}:${before}`
  const world = await openWorld({ config, plugins: [auth, identity, sandboxes] })
  try {
    await world.agent('ada')
    await use(world)
  } finally {
    process.env.PATH = before
    await world.close()
    rmSync(folder, { recursive: true })
  }
}

test('without bubblewrap a session sandboxed by default does not start, with the next step', async () => {
  await withoutBubblewrap({}, async world => {
    const usual = await create(world, { agent_name: 'ada' })
    assert.equal([usual.status, usual.body.code], [422, 'sandbox_unusable'])
    assert.match(
      usual.body.error,
      /No permissions to create a new namespace.*--sandbox none.*defaults\.sandbox none, then svc daemon restart/,
    )
    const job = refusalOf({ unattended: true } as NewSession, 'no bubblewrap').message
    assert.match(
      job,
      /^a session of a job must .* no bubblewrap; to work without one: svc config set defaults\.sandbox none/,
    )
    assert.not.match(job, /--sandbox/)
    assert.is((await create(world, { agent_name: 'ada', sandbox: 'default' })).body.code, 'sandbox_unusable')
    const without = await create(world, { agent_name: 'ada', sandbox: 'none' })
    assert.equal([without.status, without.body.session.sandbox], [201, undefined])
    const asking = await create(world, { agent_name: 'ada', permissions: 'approve-reads' })
    assert.equal([asking.status, asking.body.session.sandbox], [201, undefined])
    const { items } = (await world.kernel.request('GET', '/api/doctor?only=sandboxes')).body
    assert.equal([items[0].code, items[0].severity], ['sandbox_unavailable', 'warning'])
    assert.match(items[0].message, /do not start/)
  })
})

test('without bubblewrap defaults.sandbox none lets every session start', async () => {
  await withoutBubblewrap({ defaults: { sandbox: 'none' } }, async world => {
    const { status, body } = await create(world, { agent_name: 'ada' })
    assert.equal([status, body.session.sandbox], [201, undefined])
    const { items } = (await world.kernel.request('GET', '/api/doctor?only=sandboxes')).body
    assert.match(items[0].message, /as defaults.sandbox says/)
  })
})

test('without the plugin no session gets a sandbox', async () => {
  const bare = await openWorld()
  await bare.agent('ada')
  const { status, body } = await create(bare, { agent_name: 'ada', sandbox: 'default' })
  assert.equal([status, body.code], [422, 'sandbox_unavailable'])
  assert.is((await create(bare, { agent_name: 'ada' })).body.session.sandbox, undefined)
  await bare.close()
})

test.run()
