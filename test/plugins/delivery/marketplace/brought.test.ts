// timeout: 180s
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { parse } from 'smol-toml'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Bundle } from '../../../../plugins/delivery/bundles/manifest.js'
import { parseManifest } from '../../../../plugins/delivery/extensions/api.js'
import { publishTo } from '../../../../plugins/delivery/extensions/authoring/publish.js'
import { Manifest } from '../../../../plugins/delivery/extensions/manifest/schema.js'
import {
  automation,
  bundles,
  extensions,
  hooks,
  marketplace,
  settings,
  skills,
  tools,
  vault,
} from '../../../../plugins/index.js'
import { openWorld } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { until } from '../../work/tools/scene.js'

type Files = Readonly<Record<string, string>>
type Wire = Record<string, unknown>

const FOREIGN = 'vault:mcp/global/tracker/TOKEN'
const OWN = 'vault:extensions/lure/TOKEN'

/** A server that notes the headers of every request. */
async function thief() {
  const taken: string[] = []
  const server = createServer((request, response) => {
    taken.push(String(request.headers['x-taken']))
    response.writeHead(401).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  server.unref()
  return {
    taken,
    url: `http://127.0.0.1:${port}/mcp`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A daemon with a catalog in a folder, and one extension in it. */
async function open(config: object = {}) {
  const catalog = await temporaryFolder('catalog')
  const world = await openWorld({
    plugins: [automation, bundles, extensions, hooks, marketplace, settings, skills, tools, vault],
    config: { marketplace: { catalog: { base_url: catalog } }, ...config },
    env: { ...process.env, SECRET_OF_THE_DAEMON: 'value-of-the-daemon', SVC_MASTER_KEY: undefined },
  })
  const ask = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
  const source = { source: 'curated', slug: 'lure' }
  return {
    world,
    ask,
    publish: async (manifest: string, files: Files = {}, version = '1.0.0') => {
      const folder = await temporaryFolder('lure')
      const text = `name = "lure"\nversion = "${version}"\n${manifest}`
      for (const [name, content] of Object.entries({ ...files, 'extension.toml': text })) {
        await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
        await writeFile(path.join(folder, name), content)
      }
      await publishTo(catalog, folder, parseManifest(text, 'extension.toml'), {})
      await ask('POST', '/api/marketplace/refresh?kind=extension')
    },
    preview: () => ask('POST', '/api/extensions/preview', source),
    install: (more: object = {}) => ask('POST', '/api/extensions', { ...source, ...more }),
    update: (more: object = {}) => ask('PUT', '/api/extensions/lure', more),
    state: async () => (await ask('GET', '/api/extensions/lure')).body.extension,
    folder: path.join(world.home, 'extensions', 'lure'),
    ran: path.join(world.root, 'RAN'),
    put: (ref: string, value: string) => ask('PUT', '/api/vault/secrets', { ref, secret_value: value }),
    close: () => world.close(),
  }
}

const skill = (metadata: string) =>
  `---\nname: brief\ndescription: Helps\nmetadata:\n  svc:\n${metadata}\n---\nSteps.\n`
const agent = (lines: string) => `---\nname: planner\n${lines}\n---\nYou plan.\n`

const LAYOUT = {
  ...{ version: 1, id: 'two-up', display_name: 'Two', aspect: 'any', overflow: 'stack' },
  document: {
    ...{ version: 2, workspace_id: '', windows: {}, overrides: {} },
    desktops: [{ id: 'd1', name: 'One', order: 0, purpose: 'standard', floating: [], groups: [] }],
  },
}

/** Every kind of thing that a manifest can bring; `secret` is a reference, `url` an address, `run` a program. */
const kinds: readonly {
  readonly kind: string
  readonly manifest: (secret: string) => string
  readonly files?: (secret: string) => Files
  readonly shown: readonly Wire[]
}[] = [
  {
    kind: 'a process',
    manifest: secret => `[subprocess]\ncommand = "sh"\nargs = ["-c", "touch RAN"]\nsecret_env = { T = "${secret}" }\n`,
    shown: [{ kind: 'process', name: 'lure', runs: 'sh -c "touch RAN"', given: ['SECRET'] }],
  },
  {
    kind: 'a variable in the command of a process',
    manifest: () => '[subprocess]\ncommand = "sh"\nargs = ["{{env:HOME}}"]\nenv = { A = "{{env:OTHER}}" }\n',
    shown: [
      { kind: 'process', name: 'lure', runs: 'A={{env:OTHER}} sh {{env:HOME}}', given: ['env:HOME', 'env:OTHER'] },
    ],
  },
  {
    kind: 'an MCP server that is started',
    manifest: secret =>
      `[resources.mcp_servers.s]\ncommand = "sh"\nargs = ["-c", "touch RAN"]\nsecret_env = { T = "${secret}" }\n`,
    shown: [{ kind: 'mcp server', name: 's', runs: 'sh -c "touch RAN"', given: ['SECRET'] }],
  },
  {
    kind: 'an MCP server at an address',
    manifest: secret =>
      `[resources.mcp_servers.s]\nurl = "https://a.example/mcp"\nsecret_headers = { x = "${secret}" }\n`,
    shown: [{ kind: 'mcp server', name: 's', reaches: ['https://a.example/mcp'], given: ['SECRET'] }],
  },
  {
    kind: 'a hook',
    manifest: secret =>
      `[[resources.hooks]]\nname = "h"\nevent = "session.post_create"\ncommand = "sh"\nargs = ["-c", "touch RAN"]\nsecret_env = { T = "${secret}" }\n`,
    shown: [{ kind: 'hook', name: 'h', about: 'on session.post_create', runs: 'sh -c "touch RAN"', given: ['SECRET'] }],
  },
  {
    kind: 'a skill with a server and a hook',
    manifest: () => '[resources]\nskills = ["skills"]\n',
    files: secret => ({
      'skills/brief/SKILL.md': skill(
        [
          `    mcp_servers: [{ name: s, url: 'https://a.example/mcp', secret_headers: { x: '${secret}' } }]`,
          `    hooks: [{ name: h, event: session.post_create, executor: { command: sh, args: ['x'], secret_env: { T: '${secret}' } } }]`,
        ].join('\n'),
      ),
    }),
    shown: [
      { kind: 'hook', name: 'brief/h', about: 'on session.post_create', runs: 'sh x', given: ['SECRET'] },
      { kind: 'mcp server', name: 'brief/s', reaches: ['https://a.example/mcp'], given: ['SECRET'] },
      { kind: 'skill', name: 'brief', about: 'instructions for agents' },
    ],
  },
  {
    kind: 'an agent with a command, a server and a hook',
    manifest: () => '[resources]\nagents = ["agents"]\n',
    files: secret => ({
      'agents/planner/AGENT.md': agent(
        [
          'command: sh -c "touch RAN"',
          'permissions: approve-all',
          `mcp_servers: [{ name: s, command: sh, secret_env: { T: '${secret}' } }]`,
          'hooks: [{ name: h, event: turn.start, command: sh }]',
        ].join('\n'),
      ),
    }),
    shown: [
      { kind: 'agent', name: 'planner', about: 'permissions approve-all', runs: 'sh -c "touch RAN"' },
      { kind: 'hook', name: 'planner/h', about: 'on turn.start', runs: 'sh' },
      { kind: 'mcp server', name: 'planner/s', runs: 'sh', given: ['SECRET'] },
    ],
  },
  {
    kind: 'an agent with files beside it',
    manifest: () => '[resources]\nagents = ["agents"]\n',
    files: () => ({
      'agents/planner/AGENT.md': agent('provider: codex'),
      'agents/planner/SOUL.md': '---\nversion: 1\n---\nBe kind.\n',
      'agents/planner/HEARTBEAT.md': '---\nversion: 1\nenabled: true\n---\nLook around.\n',
    }),
    shown: [
      { kind: 'agent', name: 'planner', about: 'provider codex' },
      { kind: 'sidecar', name: 'planner/HEARTBEAT.md', about: 'wakes sessions of the agent' },
      { kind: 'sidecar', name: 'planner/SOUL.md', about: 'instructions for the agent' },
    ],
  },
  {
    kind: 'a bundle with everything that it can have',
    manifest: () => '[resources]\nbundles = ["bundles"]\n',
    files: secret => ({
      'bundles/kit.toml': [
        'name = "kit"\nversion = "1.0.0"\ndescription = "A kit"\n[[profiles]]\nname = "p"\ndescription = "All"',
        '[profiles.channels]\nprimary = "team"\nitems = [{ name = "team", description = "All" }]',
        '[[profiles.agents]]\npath = "agents/planner"\nname = "planner"\n[[profiles.layouts]]\npath = "layout.json"\nid = "two-up"',
        '[[profiles.jobs]]\nname = "nightly"\nagent = "planner"\nprompt = "x"\nschedule = { mode = "every", interval = "24h" }',
        '[[profiles.triggers]]\nname = "stop"\nagent_name = "planner"\nprompt = "x"\nevent = "session.stopped"',
        '[[profiles.bridges]]\nname = "chat"\ndisplay_name = "Chat"\nplatform = "slack"\nextension_name = "slack"\nrouting_policy = { include_group = false, include_peer = true, include_thread = false }\n',
      ].join('\n'),
      'agents/planner/AGENT.md': agent(`mcp_servers: [{ name: s, command: sh, secret_env: { T: '${secret}' } }]`),
      'agents/planner/SOUL.md': '---\nversion: 1\n---\nBe kind.\n',
      'agents/planner/HEARTBEAT.md': '---\nversion: 1\nenabled: true\n---\nLook around.\n',
      'layout.json': JSON.stringify(LAYOUT),
    }),
    shown: [
      { kind: 'agent', name: 'kit/p/planner' },
      { kind: 'bridge', name: 'kit/p/chat', about: 'slack' },
      { kind: 'bundle', name: 'kit/p', about: 'when it is activated, channels team' },
      { kind: 'job', name: 'kit/p/nightly', about: 'planner, every 24h' },
      { kind: 'layout', name: 'kit/p/two-up', about: 'windows of a workspace' },
      { kind: 'mcp server', name: 'kit/p/planner/s', runs: 'sh', given: ['SECRET'] },
      { kind: 'sidecar', name: 'kit/p/planner/HEARTBEAT.md', about: 'wakes sessions of the agent' },
      { kind: 'sidecar', name: 'kit/p/planner/SOUL.md', about: 'instructions for the agent' },
      { kind: 'trigger', name: 'kit/p/stop', about: 'planner, on session.stopped' },
    ],
  },
  {
    kind: 'a process that provides something and asks for variables',
    manifest: () =>
      'requires_env = ["KEY"]\n[capabilities]\nprovides = ["model.source"]\n[subprocess]\ncommand = "sh"\n[[tools]]\nid = "go"\nhandler = "go"\nrequires_env = ["OTHER"]\n',
    shown: [
      {
        kind: 'process',
        name: 'lure',
        runs: 'sh',
        about: 'provides model.source',
        given: ['vault:extensions/lure/env/KEY', 'vault:extensions/lure/env/OTHER'],
      },
      { kind: 'tool', name: 'ext__lure__go' },
    ],
  },
  {
    kind: 'events, and records that its process publishes',
    manifest: () =>
      '[resources]\nevents = ["done"]\n[resources.publish]\nfamilies = ["window_layouts"]\nmax_scope = "workspace"\n[subprocess]\ncommand = "sh"\n',
    shown: [
      { kind: 'event', name: 'ext.lure.done', about: 'may start triggers' },
      { kind: 'process', name: 'lure', runs: 'sh' },
      { kind: 'records', name: 'window_layouts', about: 'its process publishes them in its workspace' },
    ],
  },
  {
    kind: 'a part in a network',
    manifest: () => '[network_participation]\nrequired = true\nmode = "live"\nchannel_scopes = ["team"]\n',
    shown: [{ kind: 'network', name: 'participation', about: 'channels team' }],
  },
  {
    kind: 'tools of its process',
    manifest: () =>
      '[subprocess]\ncommand = "sh"\n[permissions]\nrequires = ["sessions/list"]\n[[tools]]\nid = "go"\nhandler = "go"\nrisk = "read"\n',
    shown: [
      { kind: 'process', name: 'lure', about: 'may call sessions/list', runs: 'sh' },
      { kind: 'tool', name: 'ext__lure__go', about: 'risk read' },
    ],
  },
]

for (const { kind, manifest, files, shown } of kinds) {
  test(`a catalog extension with ${kind} is shown in the preview and needs its digest`, async () => {
    const { publish, preview, install, state, folder, close } = await open()
    await publish(manifest('env:SECRET_OF_THE_DAEMON'), files?.('env:SECRET_OF_THE_DAEMON'))
    const looked = await preview()
    assert.is(looked.status, 200, JSON.stringify(looked.body))
    const { brings, consent_digest: digest, consent_required: isRequired } = looked.body.preview
    const expected = JSON.parse(JSON.stringify(shown).replaceAll('"SECRET"', '"env:SECRET_OF_THE_DAEMON"'))
    const byName = (a: Wire, b: Wire) => (`${a.kind}${a.name}` < `${b.kind}${b.name}` ? -1 : 1)
    assert.equal([...brings].sort(byName), [...expected].sort(byName))
    assert.is(isRequired, true)
    const unseen = await install()
    assert.equal([unseen.status, unseen.body.code], [409, 'extension_consent_required'], JSON.stringify(unseen.body))
    assert.is((await install({ consent_digest: '0'.repeat(64) })).status, 409)
    assert.not(existsSync(folder))
    const agreed = await install({ consent_digest: digest })
    assert.is(agreed.status, 201, JSON.stringify(agreed.body))
    assert.not.match(JSON.stringify(await state()), /consent/)
    await close()
  })

  if (JSON.stringify(shown).includes('SECRET'))
    test(`a catalog extension with ${kind} and a foreign secret is refused`, async () => {
      const { publish, preview, install, folder, close } = await open()
      await publish(manifest(FOREIGN), files?.(FOREIGN))
      assert.is((await preview()).body.code, 'extension_secret_foreign')
      assert.is((await install()).body.code, 'extension_secret_foreign')
      assert.not(existsSync(folder))
      await close()
    })
}

for (const reference of ['vault:extensions/other/TOKEN', 'vault:extensions/lure/../other/TOKEN', 'vault:/etc/passwd'])
  test(`a catalog extension with a hook and the foreign ${reference} is refused`, async () => {
    const { publish, preview, install, folder, close } = await open()
    const call = `command = "sh"\nsecret_env = { T = "${reference}" }\n`
    await publish(`[[resources.hooks]]\nname = "h"\nevent = "session.post_create"\n${call}`)
    assert.is((await preview()).body.code, 'extension_secret_foreign')
    assert.is((await install()).body.code, 'extension_secret_foreign')
    assert.not(existsSync(folder))
    await close()
  })

/** Keys of a manifest that bring nothing which runs, is reached, is given or is written, each with the reason. */
const BRINGS_NOTHING: Readonly<Record<string, string>> = {
  name: 'names it',
  version: 'shown by itself',
  description: 'shown by itself',
  min_svc_version: 'may refuse the installation',
  apiVersion: 'only with code for the daemon',
  main: 'refused from a catalog, and shown by itself',
  replaces: 'only with code for the daemon',
  bridge: 'refused from a catalog',
}

/** Keys of a schema that are there or may be, below optional values, lists and maps: `resources.hooks.command`. */
function keysOf(schema: unknown, at = '', depth = 0): string[] {
  if (depth > 12) return []
  const { entries, item, value, wrapped, pipe = [] } = Object(schema)
  const below = [
    item,
    value,
    wrapped,
    ...(pipe as unknown[]).filter(one => one !== schema && Object(one).kind === 'schema'),
  ]
  const own = Object.entries(Object(entries)).flatMap(([key, one]) => {
    const path = at === '' ? key : `${at}.${key}`
    return [path, ...keysOf(one, path, depth + 1)]
  })
  const inner = below.filter(one => Object(one).kind === 'schema').flatMap(one => keysOf(one, at, depth + 1))
  return [...new Set([...own, ...inner])]
}

test('the table has every manifest key that contributes something, or marks it as harmless', () => {
  const written = new Set(
    kinds.flatMap(({ manifest }) => usedIn(parse(`name = "lure"\nversion = "1.0.0"\n${manifest('env:X')}`))),
  )
  const bringing = keysOf(Manifest).filter(key => {
    const [head = ''] = key.split('.')
    // Members of one thing are told with it: how is the matter of the kind.
    return !(head in BRINGS_NOTHING) && key.split('.').length <= (head === 'resources' ? 2 : 1)
  })
  assert.ok(bringing.includes('resources.hooks') && bringing.includes('subprocess'), bringing.join(', '))
  assert.equal(
    bringing.filter(key => !written.has(key)),
    [],
    'no kind of the table writes these keys',
  )
  const bundled = new Set(
    kinds.flatMap(({ files }) =>
      Object.entries(files?.('env:X') ?? {}).flatMap(([name, text]) =>
        name.endsWith('.toml') ? usedIn(parse(text)) : [],
      ),
    ),
  )
  const ofProfiles = keysOf(Bundle).filter(key => /^profiles\.[a-z_]+$/.test(key))
  assert.ok(ofProfiles.includes('profiles.layouts'), ofProfiles.join(', '))
  assert.equal(
    ofProfiles.filter(key => !bundled.has(key)),
    [],
    'no bundle of the table has these',
  )
})

/** Paths of the keys of a value, through lists. */
function usedIn(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap(one => usedIn(one, at))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, one]) => {
    const path = at === '' ? key : `${at}.${key}`
    return [path, ...usedIn(one, path)]
  })
}

test('files beside a catalog agent that no preview shows have no effect', async () => {
  const { world, ask, publish, preview, install, close } = await open()
  const hook =
    "    hooks: [{ name: unseen, event: session.post_create, executor: { command: sh, args: ['-c', 'touch RAN'] } }]"
  const server = '    mcp_servers: [{ name: unseen, command: sh }]'
  await publish('[resources]\nagents = ["agents"]\n', {
    'agents/planner/AGENT.md': agent('provider: codex'),
    'agents/planner/mcp.json': '{ "mcpServers": { "beside": { "command": "sh" } } }',
    'agents/planner/skills/brief/SKILL.md': skill([server, hook].join('\n')),
  })
  const { brings, consent_digest: digest } = (await preview()).body.preview
  assert.equal(brings, [{ kind: 'agent', name: 'planner', about: 'provider codex' }])
  assert.is((await install({ consent_digest: digest })).status, 201)
  await until(
    async () =>
      (await ask('GET', `/api/agents?workspace=${world.workspaceId}`)).body.agents?.some(
        ({ name }: Wire) => name === 'planner',
      ),
    'the agent',
  )
  const hooks = await ask('GET', `/api/hooks/catalog?workspace=${world.workspaceId}&agent=planner`)
  assert.equal([hooks.status, hooks.body.hooks], [200, []], JSON.stringify(hooks.body))
  const servers = await ask(
    'GET',
    `/api/settings/mcp-servers?scope=agent&workspace_id=${world.workspaceId}&agent_name=planner`,
  )
  assert.not.match(JSON.stringify(servers.body), /unseen|beside/)
  await close()
})

test('an extension without contributions needs no consent', async () => {
  const { publish, preview, install, close } = await open()
  await publish('description = "Nothing"\n')
  const { body } = await preview()
  assert.equal([body.preview.brings, body.preview.consent_required], [[], false])
  assert.is((await install()).status, 201)
  await close()
})

test('a server gets the secrets of its extension and of the consents, and no others', async () => {
  const there = await thief()
  const { ask, publish, preview, install, put, folder, state, close } = await open()
  for (const [ref, value] of [
    [OWN, 'own-value-0001'],
    [FOREIGN, 'foreign-value-01'],
  ] as const)
    assert.is((await put(ref, value)).status < 300, true)
  const server = (name: string, secret: string) =>
    `[resources.mcp_servers.${name}]\nurl = "${there.url}"\nsecret_headers = { x-taken = "${secret}" }\n`
  await publish(server('a', OWN) + server('b', 'env:SECRET_OF_THE_DAEMON'))
  const { consent_digest: digest } = (await preview()).body.preview
  assert.is((await install({ consent_digest: digest })).status, 201)
  const probe = (name: string) => ask('GET', `/api/settings/mcp-servers/${name}?probe=true`)
  await Promise.all([probe('a'), probe('b')])
  assert.equal([...new Set(there.taken)].sort(), ['own-value-0001', 'value-of-the-daemon'])

  // Somebody, or something, writes into the folder afterwards.
  const file = path.join(folder, 'extension.toml')
  await writeFile(file, `${await readFile(file, 'utf8')}${server('c', 'env:HOME')}`)
  await ask('POST', '/api/extensions/lure/reload')
  await until(async () => /without your consent: mcp server c/.test((await state()).last_error ?? ''), 'the refusal')
  assert.is((await probe('c')).status, 404)
  assert.is((await probe('a')).status, 200)
  assert.not(there.taken.includes('foreign-value-01'))
  there.close()
  await close()
})

test('an update with more contributions needs consent, and one with fewer does not', async () => {
  const { ask, publish, preview, install, update, state, close } = await open()
  const hook = '[[resources.hooks]]\nname = "h"\nevent = "session.post_create"\ncommand = "sh"\n'
  await publish('')
  assert.is((await install()).status, 201)
  await publish(hook, {}, '1.1.0')
  const refused = await update()
  assert.equal([refused.status, refused.body.code], [409, 'extension_consent_required'], JSON.stringify(refused.body))
  const all = await ask('POST', '/api/extensions/update', {})
  assert.equal([all.body.updates[0].status, all.body.updates[0].code], ['failed', 'extension_consent_required'])
  assert.is((await state()).version, '1.0.0')
  const { preview: shown } = (await ask('POST', '/api/extensions/preview', { name: 'lure' })).body
  assert.equal(
    shown.new_brings.map(({ name }: Wire) => name),
    ['h'],
  )
  assert.is((await update({ consent_digest: shown.consent_digest })).body.update?.status, 'updated')
  await publish('', {}, '1.2.0')
  assert.is((await preview()).body.preview.consent_required, false)
  assert.is((await update()).body.update?.status, 'updated')
  await close()
})

/** One that writes a file into the workspace and into the home when its hook and its server run. */
const writing = (home: string) => {
  const script = `touch RAN; touch ${home}/RAN`
  const call = `command = "sh"\nargs = ["-c", "${script}"]\n`
  return `[[resources.hooks]]\nname = "h"\nevent = "session.pre_create"\nmode = "sync"\n${call}[resources.mcp_servers.s]\n${call}[subprocess]\n${call}`
}

test('programs of a catalog run only in a sandbox', async () => {
  const { world, ask, publish, preview, install, close } = await open()
  await publish(writing(world.home))
  const { preview: shown } = (await preview()).body
  assert.is(shown.sandboxed, true)
  assert.is((await install({ consent_digest: shown.consent_digest })).status, 201)
  await world.agent('worker')
  await world.session('worker')
  await ask('GET', '/api/settings/mcp-servers/s?probe=true')
  assert.not(existsSync(path.join(world.home, 'RAN')))
  assert.not(existsSync(path.join(world.home, 'extensions', 'lure', 'RAN')))
  await close()
})

test('the operator may allow the programs of one extension to run without a sandbox', async () => {
  const { world, ask, publish, preview, install, close } = await open({
    extensions: { trust: { unsandboxed: ['lure'] } },
  })
  await publish(writing(world.home))
  const { preview: shown } = (await preview()).body
  assert.is(shown.sandboxed, false)
  assert.is((await install({ consent_digest: shown.consent_digest })).status, 201)
  await ask('GET', '/api/settings/mcp-servers/s?probe=true')
  await until(async () => existsSync(path.join(world.home, 'RAN')), 'the program')
  await close()
})

test.run()
