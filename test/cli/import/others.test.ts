import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sourceOf } from '../../../cli/import/foreign-file.js'
import { importers } from '../../../cli/import/importers.js'
import { importCodex, importGemini, importOpenClaw } from '../../../cli/import/other-agents.js'
import type { Found, WantedServer } from '../../../cli/import/plan.js'
import { importAcpRegistry, importMcpRegistry } from '../../../cli/import/registries.js'
import { around } from './around.js'

const file = (path: string, value: unknown) =>
  sourceOf(path, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value, null, 1)))
const servers = (found: Found) =>
  Object.fromEntries(
    found.wanted.flatMap(one => (one.kind === 'mcp_server' ? [[one.name, one.server]] : [])),
  ) as Record<string, WantedServer['server']>
const left = (found: Found) => found.left.map(({ what, why }) => `${what}: ${why}`)

test('config.toml of Codex gives servers with tokens by variable; other settings are not imported', () => {
  const text = [
    '\uFEFFmodel = "gpt-5.5"',
    'approval_policy = "on-request"',
    '',
    '[mcp_servers.docs]',
    'command = "npx"',
    'args = ["-y", "docs-mcp"]',
    'env_vars = ["DOCS_HOME"]',
    'startup_timeout_sec = 20',
    '[mcp_servers.docs.env]',
    'API_KEY = "0123456789abcdef"',
    '',
    '[mcp_servers."figma"]',
    'url = "https://mcp.figma.com/mcp"',
    'bearer_token_env_var = "FIGMA_TOKEN"',
    'http_headers = { "X-Region" = "us" }',
    '',
    '[mcp_servers.off]',
    'command = "x"',
    'enabled = false',
    '',
    '[mcp_servers.unset]',
    'url = "https://x.example/mcp"',
    'bearer_token_env_var = "UNSET"',
    '',
    '[profiles.fast]',
    'model = "gpt-5.5-mini"',
  ].join('\n')
  const found = importCodex(
    [file('/home/me/.codex/config.toml', text)],
    around({ env: { FIGMA_TOKEN: 'figd_0123456789' } }),
  )
  assert.equal(servers(found), {
    docs: {
      command: 'npx',
      args: ['-y', 'docs-mcp'],
      secret_env: { DOCS_HOME: 'env:DOCS_HOME', API_KEY: 'vault:mcp/global/docs/env/API_KEY' },
    },
    figma: {
      url: 'https://mcp.figma.com/mcp',
      headers: { 'X-Region': 'us' },
      secret_headers: { Authorization: 'vault:mcp/global/figma/header/Authorization' },
    },
  })
  assert.equal(
    found.left.map(({ what, line }) => [what, line]),
    [
      ['docs.startup_timeout_sec', 4],
      ['off', 17],
      ['unset', 21],
    ],
  )
  assert.equal(
    found.inPlace.map(({ what, line }) => [what, line]),
    [
      ['model', 1],
      ['approval_policy', 2],
      ['profiles', 1],
    ],
  )
  const broken = importCodex([file('/c.toml', 'a = 1\n[mcp_servers\n')], around())
  assert.match(left(broken)[0] ?? '', 'c.toml: not valid TOML')
  assert.is(broken.left[0]?.line, 2)
})

test('a url alone in settings.json of Gemini is an SSE server', () => {
  const found = importGemini(
    [
      file('/home/me/.gemini/settings.json', {
        theme: 'dark',
        mcpServers: {
          sse: { url: 'http://x/sse' },
          http: { httpUrl: 'http://x/mcp', headers: { A: 'b' }, trust: true },
          typed: { url: 'http://y/mcp', type: 'http' },
          program: { command: 'x', args: null, cwd: './sub', timeout: 5000 },
        },
      }),
    ],
    around(),
  )
  assert.equal(Object.keys(servers(found)), ['http', 'typed', 'program'])
  assert.match(left(found).join('\n'), 'sse: svc has no SSE transport')
  assert.equal(
    found.inPlace.map(({ what }) => what),
    ['theme'],
  )
})

const JOBS = {
  version: 1,
  jobs: [
    {
      ...{ id: 'a', name: 'Morning brief', enabled: true, sessionTarget: 'isolated', wakeMode: 'now' },
      schedule: { kind: 'cron', expr: '0 7 * * mon-fri', tz: 'America/Los_Angeles' },
      payload: { kind: 'agentTurn', message: 'Summarize overnight updates.' },
      delivery: { mode: 'announce', channel: 'slack' },
    },
    {
      id: 'b',
      enabled: false,
      schedule: { kind: 'every', everyMs: 3_600_000 },
      payload: { kind: 'agentTurn', message: 'm', model: 'opus' },
    },
    {
      id: 'c',
      name: 'at',
      schedule: { kind: 'at', at: '2031-01-01T00:00:00Z' },
      payload: { kind: 'agentTurn', message: 'm' },
    },
    { id: 'd', name: 'past', schedule: { kind: 'at', atMs: 1 }, payload: { kind: 'agentTurn', message: 'm' } },
    { id: 'e', name: 'wake', schedule: { kind: 'every', everyMs: 1000 }, payload: { kind: 'systemEvent', text: 't' } },
    {
      id: 'f',
      name: 'six',
      schedule: { kind: 'cron', expr: '0 0 7 * * *' },
      payload: { kind: 'agentTurn', message: 'm' },
    },
    { id: 'g', name: 'ms', schedule: { kind: 'every', everyMs: 1500 }, payload: { kind: 'agentTurn', message: 'm' } },
    {
      id: 'h',
      name: 'zone',
      schedule: { kind: 'cron', expr: '0 7 * * *', tz: 'Nowhere' },
      payload: { kind: 'agentTurn', message: 'm' },
    },
    null,
  ],
}

test('jobs and skills of OpenClaw are imported', () => {
  const found = importOpenClaw(
    [
      file('/home/me/.openclaw/cron/jobs.json', JOBS),
      file('/home/me/.openclaw/skills/pdf/SKILL.md', '---\nname: pdf\n---\nx'),
      file('/home/me/.openclaw/openclaw.json', { mcp: { servers: { a: { command: 'x' } } }, gateway: {} }),
    ],
    around(),
  )
  assert.equal(
    found.wanted.map(one => (one.kind === 'job' ? [one.name, one.schedule, one.enabled] : [one.kind, one.name])),
    [
      ['Morning brief', { mode: 'cron', expr: '0 7 * * 1-5', timezone: 'America/Los_Angeles' }, undefined],
      ['b', { mode: 'every', interval: '3600s' }, false],
      ['at', { mode: 'at', time: '2031-01-01T00:00:00.000Z' }, undefined],
      ['skill', 'pdf'],
      ['mcp_server', 'a'],
    ],
  )
  assert.equal(left(found), [
    'Morning brief.delivery: svc notifies by presets: svc notifications preset --help',
    'b.payload.model: a job runs the model of its agent: --agent names one',
    'past: its time has passed',
    'wake: it wakes the main session of OpenClaw; svc has heartbeats: svc agent heartbeat --help',
    'six: its cron expression does not have five fields',
    'ms: every 1500 ms: the interval must be whole seconds',
    'zone: schedule.timezone: must be an IANA name such as Europe/Paris',
    'job 9: its payload is the undefined undefined; agentTurn is known',
  ])
})

test('server.json of the MCP registry gives packages, remotes and required values', () => {
  const read = (value: unknown) => importMcpRegistry([file('/s/server.json', value)], around())
  const npm = read({
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: 'io.github.acme/weather',
    packages: [
      {
        ...{ registryType: 'npm', identifier: '@acme/weather', version: '1.2.3', transport: { type: 'stdio' } },
        runtimeArguments: [{ type: 'positional', value: '-y' }],
        packageArguments: [
          { type: 'named', name: '--units', default: 'metric' },
          { type: 'positional', value: 'port={port}', variables: { port: { default: '80' } } },
          { type: 'positional', valueHint: 'optional' },
        ],
        environmentVariables: [
          { name: 'WEATHER_KEY', isRequired: true, isSecret: true },
          { name: 'LEVEL', default: 'info' },
          { name: 'NOTHING' },
        ],
      },
      { registryType: 'oci', identifier: 'ghcr.io/acme/weather:1.2.3' },
    ],
  })
  assert.equal(servers(npm).weather, {
    command: 'npx',
    args: ['-y', '@acme/weather@1.2.3', '--units', 'metric', 'port=80'],
    env: { LEVEL: 'info' },
    secret_env: { WEATHER_KEY: 'vault:mcp/global/weather/env/WEATHER_KEY' },
  })
  assert.equal(left(npm), [
    'io.github.acme/weather: 1 other ways to run it are ignored; the first supported one is used',
    'io.github.acme/weather WEATHER_KEY: it is required and has no value: svc vault put vault:mcp/global/weather/env/WEATHER_KEY',
  ])
  const others = read({
    servers: [
      { server: { name: 'a/py', packages: [{ registryType: 'pypi', identifier: 'mcp-x', version: '2.0' }] } },
      {
        server: {
          name: 'a/oci',
          packages: [
            {
              registryType: 'oci',
              identifier: 'docker.io/a/x',
              version: '2',
              environmentVariables: [{ name: 'K', value: 'v' }],
            },
          ],
        },
      },
      {
        server: {
          name: 'a/web',
          remotes: [
            { type: 'sse', url: 'https://x/sse' },
            { type: 'streamable-http', url: 'https://x/mcp', headers: [{ name: 'X-Key', isRequired: true }] },
          ],
        },
      },
      { server: { name: 'a/bundle', packages: [{ registryType: 'mcpb', identifier: 'https://x/y.mcpb' }] } },
      {
        server: {
          name: 'a/needs',
          packages: [
            {
              registryType: 'npm',
              identifier: 'n',
              packageArguments: [{ type: 'positional', valueHint: 'folder', isRequired: true }],
            },
          ],
        },
      },
      {
        server: {
          name: 'a/evil',
          packages: [{ registryType: 'npm', identifier: '--eval=x', runtimeHint: '../../bin/sh' }],
        },
      },
      { server: { name: 'a/none' } },
    ],
  })
  assert.equal(servers(others), {
    py: { command: 'uvx', args: ['mcp-x@2.0'] },
    oci: { command: 'docker', args: ['run', '-i', '--rm', '-e', 'K', 'docker.io/a/x:2'], env: { K: 'v' } },
    web: { url: 'https://x/mcp', secret_headers: { 'X-Key': 'vault:mcp/global/web/header/X-Key' } },
  })
  assert.match(
    left(others).join('\n'),
    /a\/bundle: its package is of "mcpb"[\s\S]*a\/needs: its argument "folder"[\s\S]*a\/evil: its package has no name[\s\S]*a\/none: it has neither/,
  )
})

test('entries of the ACP registry become providers', () => {
  const found = importAcpRegistry(
    [
      file('/r/registry.json', {
        agents: [
          {
            id: 'codex-acp',
            name: 'Codex',
            version: '1.4.0',
            distribution: { npx: { package: '@agentclientprotocol/codex-acp@1.4.0' } },
          },
          {
            id: 'py',
            name: 'Py',
            distribution: {
              uvx: { package: 'py-acp', args: ['--acp'], env: { PY_KEY: '', PY_UPDATE: 'off', LD_PRELOAD: 'x' } },
            },
          },
          {
            id: 'bin',
            name: 'Bin',
            distribution: { binary: { 'linux-x86_64': { archive: 'https://x/y.tgz', cmd: './bin' } } },
          },
          { id: 'claude', name: 'Claude', distribution: { npx: { package: 'x' } } },
          { id: 'evil', name: 'Evil', distribution: { npx: { package: 'x; rm -rf ~' } } },
          { id: '<b>', distribution: { npx: { package: 'x' } } },
        ],
      }),
    ],
    around({ platform: 'nowhere' }),
  )
  assert.equal(
    found.wanted.map(one => (one.kind === 'provider' ? [one.name, one.settings] : [])),
    [
      ['codex-acp', { display_name: 'Codex', command: 'npx -y @agentclientprotocol/codex-acp@1.4.0' }],
      ['py', { display_name: 'Py', command: 'uvx py-acp --acp', env: { PY_UPDATE: 'off' } }],
    ],
  )
  assert.equal(
    found.left.map(({ what }) => what),
    ['py PY_KEY', 'py LD_PRELOAD', 'bin', 'claude', 'evil', '<b>'],
  )
})

test('a binary agent of the ACP registry is listed as manual, with the next command', () => {
  const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const binary = { [`linux-${arch}`]: { archive: 'https://x/y.tgz', cmd: './bin', args: ['acp', '--fast'] } }
  const entry = { id: 'bin', name: 'Bin', distribution: { binary } }
  const found = importAcpRegistry([file('/r/agent.json', entry)], around({ platform: 'linux' }))
  assert.match(
    left(found).join('\n'),
    /put bin of "https:\/\/x\/y\.tgz" on the PATH, then svc config set providers\.bin '\{"command":"bin acp --fast"\}'/,
  )
})

const kindOf = (path: string, text = '') => importers.find(({ takes }) => takes(path, text))?.name

for (const [path, name] of Object.entries({
  '/etc/crontab': 'crontab',
  '/etc/cron.d/backup': 'crontab',
  '/x/my.crontab': 'crontab',
  '/home/me/.claude': 'claude',
  '/w/.agents': 'claude',
  '/w/.claude/settings.local.json': 'claude',
  '/home/me/.claude.json': 'claude',
  '/home/me/.codex/config.toml': 'codex',
  '/home/me/.gemini/settings.json': 'gemini',
  '/home/me/.openclaw': 'openclaw',
  '/home/me/.openclaw/cron/jobs.json': 'openclaw',
  '/x/server.json': 'mcp-registry',
  '/x/agent.json': 'acp-registry',
  '/x/.mcp.json': 'mcp',
  '/x/settings.jsonc': 'mcp',
}))
  test(`the file ${path} is of kind ${name}`, () => assert.is(kindOf(path), name))

test('a file without a known name is recognized by its content', () => {
  assert.is(kindOf('/x/weather.json', '{"packages": [{"registryType": "npm"}]}'), 'mcp-registry')
  assert.is(kindOf('/x/notes.txt'), undefined)
})

test.run()
