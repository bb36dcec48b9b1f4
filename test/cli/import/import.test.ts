import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { automation, hooks, settings, trust, vault } from '../../../plugins/index.js'
import { openWorld, type World } from '../../fixtures/session-world.js'
import type { Reply } from '../../harness/kernel.js'
import { runCli } from '../fake-daemon.js'
import { data, dist } from '../tree.js'

const TOKEN = 'ghp_abcdefghijklmnopqrstuvwxyz012345'

let world: World
test.before(async () => {
  world = await openWorld({ listen: ['socket'], plugins: [automation, hooks, settings, trust, vault] })
})
test.after(() => world.close())

const svc = (...argv: string[]) =>
  runCli(world.home, argv, {
    data,
    root: dist,
    cwd: world.root,
    columns: 80,
    tty: true,
    env: { COLUMNS: '80', NO_COLOR: '1', HOME: world.root, PATH: '/usr/bin:/bin', TZ: 'Europe/Berlin' },
  })

/** Counts of an import, and everything that it printed. */
async function imported(...argv: string[]) {
  const { code, stdout, stderr } = await svc('import', ...argv, '--json')
  assert.is(code, 0, stderr || stdout)
  return { ...JSON.parse(stdout), text: stdout }
}

const put = (name: string, text: string | Buffer) => {
  mkdirSync(join(world.root, name, '..'), { recursive: true })
  writeFileSync(join(world.root, name), text)
  return name
}

/** What an import may change. */
const state = async () => {
  const ask = async (path: string) => (await world.kernel.request('GET', path)).body
  const paths = ['/api/automation/jobs', '/api/agents', '/api/settings/hooks', '/api/vault/secrets']
  return [readFileSync(join(world.home, 'config.json'), 'utf8'), ...(await Promise.all(paths.map(ask)))]
}

test('a dry run changes nothing, an import makes the planned changes, and a repeated import makes none', async () => {
  const servers = put(
    'servers.json',
    `{"mcpServers": {"gh": {"command": "npx", "args": ["-y", "gh"], "env": {"GH_TOKEN": "${TOKEN}", "PORT": 1}}, "off": {"disabled": true}}}`,
  )
  const jobs = put('my.crontab', 'MAILTO=me\n0 1 * * * backup --all\n@reboot x\n@daily other\n')
  for (const [file, create, left] of [
    [servers, 1, 1],
    [jobs, 3, 2],
  ] as const) {
    const before = await state()
    const dry = await imported(file, '--dry-run')
    assert.equal(await state(), before)
    assert.equal([dry.dry_run, dry.counts.create, dry.counts.left], [true, create, left])
    const first = await imported(file)
    assert.equal(first.items, dry.items)
    const after = await state()
    assert.not.equal(after, before)
    const second = await imported(file)
    assert.equal([second.counts.create, second.counts.update, second.counts.unchanged], [0, 0, create])
    assert.equal(await state(), after)
    for (const { text } of [dry, first, second]) assert.not.ok(text.includes(TOKEN))
  }
  const [config] = await state()
  assert.equal(JSON.parse(config as string).mcp_servers, {
    gh: {
      command: 'npx',
      args: ['-y', 'gh'],
      env: { PORT: '1' },
      secret_env: { GH_TOKEN: 'vault:mcp/global/gh/env/GH_TOKEN' },
    },
  })
  const { body } = await world.kernel.request('GET', '/api/automation/jobs')
  assert.equal(body.jobs.map((job: Reply) => [job.agent_name, job.enabled, job.schedule]).sort(), [
    ['crontab', false, { mode: 'cron', expr: '0 0 * * *', timezone: 'Europe/Berlin' }],
    ['crontab', false, { mode: 'cron', expr: '0 1 * * *', timezone: 'Europe/Berlin' }],
  ])
})

test('a changed line updates its job and keeps enabled; a changed server keeps its sandbox', async () => {
  const job = (await world.kernel.request('GET', '/api/automation/jobs?q=backup')).body.jobs[0]
  await world.kernel.request('PATCH', `/api/automation/jobs/${job.id}`, {
    enabled: true,
    schedule: { ...job.schedule, catch_up_policy: 'coalesce' },
  })
  put('my.crontab', '0 2 * * * backup --all\n@daily other\n')
  const { counts } = await imported('my.crontab')
  assert.equal([counts.create, counts.update, counts.unchanged], [0, 1, 2])
  const after = (await world.kernel.request('GET', `/api/automation/jobs/${job.id}`)).body.job
  assert.is(after.enabled, true)
  assert.equal(after.schedule, {
    mode: 'cron',
    expr: '0 2 * * *',
    timezone: 'Europe/Berlin',
    catch_up_policy: 'coalesce',
  })
  assert.is((await imported('my.crontab')).counts.update, 0)
  put('servers.json', '{"mcpServers": {"gh": {"command": "npx", "args": ["gh@2"]}}}')
  assert.is((await imported('servers.json')).counts.update, 1)
  assert.is((await imported('servers.json')).counts.unchanged, 1)
})

test('an import into a workspace creates its own records', async () => {
  assert.is((await svc('workspace', 'trust', world.root)).code, 0)
  put('one.json', '{"servers": {"mine": {"command": "x", "env": {"MY_SECRET": "0123456789abcdef"}}}}')
  assert.is((await imported('one.json', '--workspace', world.root)).counts.create, 1)
  assert.is((await imported('one.json', '--workspace', world.root)).counts.unchanged, 1)
  const written = JSON.parse(readFileSync(join(world.root, '.svc', 'config.json'), 'utf8'))
  assert.equal(written.mcp_servers.mine.secret_env, {
    MY_SECRET: `vault:mcp/ws/${world.workspaceId}/mine/env/MY_SECRET`,
  })
})

test('a repeated import of each other kind of file changes nothing', async () => {
  const files = {
    '.codex/config.toml': 'model = "x"\n[mcp_servers.of-codex]\ncommand = "x"\n',
    '.gemini/settings.json': '{"mcpServers": {"of-gemini": {"httpUrl": "https://x.example/mcp"}}}',
    '.openclaw/cron/jobs.json':
      '{"jobs": [{"name": "Morning brief", "schedule": {"kind": "cron", "expr": "0 7 * * *"}, "payload": {"kind": "agentTurn", "message": "Sum up"}}]}',
    'server.json':
      '{"name": "a/weather", "packages": [{"registryType": "npm", "identifier": "w", "environmentVariables": [{"name": "KEY", "isRequired": true}]}]}',
    'agent.json':
      '{"id": "acme-acp", "name": "Acme", "distribution": {"npx": {"package": "acme-acp@1.0.0", "args": ["--acp"]}}}',
  }
  for (const [name, text] of Object.entries(files)) put(name, text)
  for (const source of ['codex', 'gemini', 'openclaw', 'server.json', 'agent.json']) {
    const first = await imported(source)
    assert.equal([first.counts.create, first.counts.failed], [1, 0], source)
    const second = await imported(source)
    assert.equal([second.counts.create, second.counts.update, second.counts.unchanged], [0, 0, 1], source)
  }
})

test('an imported agent is at once the provider of agents without one', async () => {
  const ofGeneral = async () => {
    const { agents } = (await world.kernel.request('GET', '/api/agents')).body
    return agents.find(({ name }: { name: string }) => name === 'general').provider
  }
  assert.is((await svc('config', 'unset', 'providers.acme-acp')).code, 0)
  assert.is(await ofGeneral(), '')
  assert.is((await imported('agent.json')).counts.create, 1)
  assert.is(await ofGeneral(), 'acme-acp')
})

test('a refused entry is reported and does not affect the other entries', async () => {
  const long = 'x'.repeat(5000)
  put('long.json', `{"servers": {"long": {"command": "${long}"}, "fine": {"command": "x"}}}`)
  const { code, stdout } = await svc('import', 'long.json')
  assert.is(code, 1)
  assert.match(stdout, /failed +mcp_server +long/)
  assert.match(stdout, /created +mcp_server +fine/)
})

test('files that the daemon reads in place are not copied: .mcp.json, .agents and .claude', async () => {
  const server = `{"mcpServers": {"in-place": {"command": "x", "env": {"TOKEN": "${TOKEN}"}}}}`
  put('.mcp.json', server)
  put('inner/.mcp.json', server.replace('in-place', 'of-a-folder'))
  put('proj/.agents/skills/one/SKILL.md', '---\nname: one\ndescription: One.\n---\nx')
  put('proj/.claude/skills/two/SKILL.md', '---\nname: two\ndescription: Two.\n---\nx')
  const before = await state()
  for (const [source, count] of [
    ['.mcp.json', 1],
    ['proj/.agents', 1],
    ['proj/.claude', 1],
  ] as const) {
    const { counts, in_place: inPlace } = await imported(source)
    assert.equal([counts.create, counts.update, counts.left, counts.in_place], [0, 0, 0, count], source)
    assert.match(inPlace[0].why, /reads/)
  }
  assert.equal(await state(), before)
  assert.match((await svc('import', '.mcp.json')).stdout.replace(/\s+/g, ' '), /svc mcp list --workspace/)
  assert.is((await imported('inner/.mcp.json', '--dry-run')).counts.create, 1, 'a folder that is no workspace')
})

test('unreadable files and missing sources are reported', async () => {
  const failed = async (...argv: string[]) => {
    const { code, stderr } = await svc('import', ...argv)
    return [code, /code: (\w+)/.exec(stderr)?.[1], stderr] as const
  }
  put('large.json', Buffer.alloc(10 * 1024 * 1024, 0x20))
  put('bytes.json', Buffer.from([0x7b, 0xff, 0xfe]))
  symlinkSync('loop.json', join(world.root, 'loop.json'))
  put('unknown.xyz', 'x')
  assert.equal((await failed('large.json')).slice(0, 2), [7, 'import_file_unreadable'])
  assert.equal((await failed('bytes.json')).slice(0, 2), [7, 'import_file_unreadable'])
  assert.equal((await failed('loop.json')).slice(0, 2), [4, 'import_source_missing'])
  assert.equal((await failed('nothing')).slice(0, 2), [4, 'import_source_missing'])
  assert.equal((await failed('cursor')).slice(0, 2), [4, 'import_source_missing'])
  const [code, , said] = await failed('unknown.xyz')
  assert.is(code, 2)
  assert.match(said, 'svc import unknown.xyz --format crontab')
  assert.equal((await failed('unknown.xyz', '--format', 'none')).slice(0, 2), [2, 'usage'])
})

test('programs with files on this machine are listed in at most 80 columns', async () => {
  put(
    '.cursor/mcp.json',
    `{"mcpServers": {"c<\\u001b[31m>": {"command": "x"}, "d": {"command": "\${UNSET_VARIABLE_OF_A_PERSON}"}}}`,
  )
  const { stdout } = await svc('import')
  assert.match(stdout, /cursor +mcp/)
  assert.match(stdout, /svc import [a-z]+ --dry-run/)
  const run = await svc('import', 'cursor', '--dry-run')
  assert.is(run.code, 0)
  assert.not.ok(run.stdout.includes('\u001b'))
  for (const line of [...stdout.split('\n'), ...run.stdout.split('\n')]) assert.ok(line.length <= 80, line)
})

test.run()
