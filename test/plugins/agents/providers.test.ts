import { mkdir, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import {
  looksSecret,
  type Provider,
  Providers,
  type ProvidersApi,
  ProviderUsers,
} from '../../../plugins/agents/providers/api.js'
import { catalog } from '../../../plugins/agents/providers/catalog.js'
import { findExecutable } from '../../../plugins/agents/providers/detect.js'
import { environmentOf } from '../../../plugins/agents/providers/environment.js'
import providers from '../../../plugins/agents/providers/index.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'

const SECRET = `OPENAI_API_KEY ANTHROPIC_API_KEY APIKEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID GITHUB_TOKEN GITHUB_PAT
  npm_config_//registry.example/:_authToken NPM_CONFIG__AUTH DB_PASS DB_PASSWORD MYSQL_PWD SSH_PASSPHRASE SECRET_KEY_BASE
  GOOGLE_APPLICATION_CREDENTIALS MY_CREDENTIAL AUTH AUTHORIZATION AUTH_HEADER OAUTH_TOKEN SESSION_COOKIE SENTRY_DSN
  AZURE_STORAGE_CONNECTION_STRING githubToken JWT BEARER STRIPE_SECRET PRIVATE_THING`.split(/\s+/)
const HARMLESS =
  `PATH HOME PWD OLDPWD LANG LC_ALL TERM EDITOR GIT_AUTHOR_NAME AUTHOR SSH_AUTH_SOCK TOKENIZERS_PARALLELISM
  MAX_THINKING_TOKENS CLAUDE_CODE_MAX_OUTPUT_TOKENS KEYBOARD_LAYOUT COMPASS BYPASS_PROXY NODE_OPTIONS HTTP_PROXY SHELL
  XDG_RUNTIME_DIR PGPASSFILE PATIENCE`.split(/\s+/)

for (const name of SECRET)
  test(`${name} is recognized as a secret`, () => {
    assert.ok(looksSecret(name))
  })
for (const name of HARMLESS)
  test(`${name} is not recognized as a secret`, () => {
    assert.not.ok(looksSecret(name))
  })

const places = { root: '/home/svc', isolatedHome: '/home/svc/providers/x' }
const like = (changes: Partial<Provider>): Provider => ({ ...(catalog[0] as Provider), name: 'x', ...changes })

test('the filtered environment omits secrets and stale values and puts our commands first', () => {
  const env = {
    PATH: '/usr/bin:relative:/bin',
    HOME: '/me',
    EDITOR: 'vi',
    A_TOKEN: 't',
    SVC_SESSION_ID: 'old',
    SVC_BIN_DIR: '/opt/svc/bin',
  }
  assert.equal(environmentOf(like({}), env, places), {
    PATH: '/opt/svc/bin:/usr/bin:/bin',
    HOME: '/me',
    EDITOR: 'vi',
    SVC_BIN: '/opt/svc/bin/svc',
    SVC_HOME: '/home/svc',
    SVC_PROVIDER: 'x',
    SVC_PROVIDER_HARNESS: 'acp',
    SVC_PROVIDER_AUTH_MODE: 'none',
    SVC_PROVIDER_ENV_POLICY: 'filtered',
    SVC_PROVIDER_HOME_POLICY: 'operator',
  })
})

test('the isolated environment is a short list with its own home', () => {
  const env = { HOME: '/me', EDITOR: 'vi', LC_ALL: 'C', USER: 'me', XDG_CONFIG_HOME: '/me/.config' }
  const result = environmentOf(like({ envPolicy: 'isolated', homePolicy: 'isolated' }), env, places)
  assert.is(result.EDITOR, undefined)
  assert.is(result.LC_ALL, 'C')
  assert.is(result.HOME, places.isolatedHome)
  assert.is(result.XDG_CONFIG_HOME, `${places.isolatedHome}/.config`)
  assert.is(result.XDG_CACHE_HOME, `${places.isolatedHome}/.cache`)
  assert.is(result.PATH, '/usr/local/bin:/usr/bin:/bin')
  assert.is(result.SVC_BIN, undefined)
})

test('a command is an executable file in one of the folders', async () => {
  const folder = await temporaryFolder('detect')
  const file = (name: string) => path.join(folder, name)
  await writeFile(file('tool'), '#!/bin/sh\n', { mode: 0o755 })
  await writeFile(file('plain'), 'x', { mode: 0o644 })
  await mkdir(file('folder'))
  await symlink('tool', file('link'))
  await symlink('nowhere', file('broken'))
  assert.is(await findExecutable('tool', ['/nowhere', folder]), file('tool'))
  assert.is(await findExecutable('link', [folder]), file('link'))
  assert.is(await findExecutable(file('tool'), []), file('tool'))
  for (const name of ['plain', 'folder', 'broken', 'absent', '', './tool', 'a\0b']) {
    assert.is(await findExecutable(name, [folder]), undefined, name)
  }
  await rm(folder, { recursive: true })
})

/** Hands the service to the test and contributes one definition that needs a command. */
function user(command: string | undefined, seen: (api: ProvidersApi) => void) {
  const { contribute } = surfaceOf<object>()
  return definePlugin({
    name: 'user',
    version: '1.0.0',
    requires: { providers: Providers },
    service: async () =>
      class {
        constructor(kernel: { needs: { providers: ProvidersApi } }) {
          seen(kernel.needs.providers)
        }
      },
  }).surface({
    registries: [
      contribute(ProviderUsers, () => [
        { read: async () => [{ provider: command ? 'local' : 'codex', by: 'mine', command }] },
      ]),
    ],
  })
}

test('status and doctor name the missing command and how to install it', async () => {
  const kernel = await boot({ plugins: [daemon, providers, user(undefined, () => {})], env: { PATH: '/nowhere' } })
  const status = (await kernel.request('GET', '/api/status')).body.providers
  const codex = status.find((entry: { name: string }) => entry.name === 'codex')
  assert.is(codex.state, 'missing')
  assert.is(codex.code, 'provider_cli_missing')
  assert.match(codex.suggested_command, 'npm install')
  assert.is(status.find((entry: { name: string }) => entry.name === 'local').state, 'ready')
  const { items } = (await kernel.request('GET', '/api/doctor?only=runtime.providers')).body
  const [none, used, ...rest] = items
  assert.equal([none.code, none.title, rest], ['provider_cli_missing', 'no agent program is installed', []])
  assert.match(none.suggested_command, /^npm install -g /)
  assert.is(used.code, 'provider_cli_missing')
  assert.match(used.message, 'codex-acp')
  assert.match(used.message, 'mine')
  assert.match(used.suggested_command, 'codex-acp')
  await kernel.close()
})

test('an existing command is no finding; a workspace-relative one cannot be checked', async () => {
  for (const command of ['node', './gate.sh']) {
    const kernel = await boot({ plugins: [daemon, providers, user(command, () => {})] })
    const { items } = (await kernel.request('GET', '/api/doctor?only=providers')).body
    assert.equal(
      items.map((item: { id: string }) => item.id),
      ['runtime.providers'],
    )
    await kernel.close()
  }
})

test('the preferred provider comes from the configuration; an unknown one is a finding', async () => {
  for (const [name, known] of [
    ['codex', true],
    ['nobody', false],
  ] as const) {
    const home = await temporaryFolder('preferred')
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ defaults: { provider: name } }))
    let api: ProvidersApi | undefined
    const kernel = await boot({ home, plugins: [daemon, providers, user('node', given => (api = given))] })
    assert.is(api?.preferred?.name, known ? name : undefined)
    const codes = (await kernel.request('GET', '/api/doctor?only=runtime.providers')).body.items.map(
      (i: { code: string }) => i.code,
    )
    assert.is(codes.includes('provider_unknown'), !known)
    await kernel.close()
    await rm(home, { recursive: true })
  }
})

test('the preferred provider is the default in every view, also with its own entry', async () => {
  const config = { defaults: { provider: 'svc' }, providers: { svc: { base_url: 'http://127.0.0.1:9/v1' } } }
  const home = await temporaryFolder('default')
  await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
  const kernel = await boot({ home, plugins: [daemon, providers] })
  assert.is((await kernel.request('GET', '/api/providers/svc')).body.default, true)
  const listed = (await kernel.request('GET', '/api/providers')).body.providers as { name: string; default: boolean }[]
  assert.equal(
    listed.filter(one => one.default).map(({ name }) => name),
    ['svc'],
  )
  await kernel.close()
  await rm(home, { recursive: true })
})

test('an isolated home is created readable only by its owner', async () => {
  let api: ProvidersApi | undefined
  const kernel = await boot({ plugins: [daemon, providers, user('node', given => (api = given))] })
  const environment = await api?.environment(like({ homePolicy: 'isolated' }))
  const info = await stat(environment?.HOME ?? '')
  assert.is(info.mode & 0o777, 0o700)
  assert.ok(environment?.HOME?.startsWith(path.join(await realpath(kernel.home), 'providers')))
  await kernel.close()
})

test('the catalog: every provider is a program with arguments and install command, or needs only an endpoint', () => {
  const names = catalog.map(provider => provider.name)
  assert.equal(names, ['local', 'claude', 'codex', 'gemini', 'opencode', 'copilot', 'qwen', 'kimi', 'pi', 'svc'])
  for (const { name, argv, install, loginCheck, needsEndpoint } of catalog.slice(1)) {
    for (const word of [...argv, ...(loginCheck ?? [])]) assert.match(word, /^[\w-]+$/, name)
    if (needsEndpoint) continue
    assert.match(install ?? '', /^npm install -g [@\w/-]+( [@\w/-]+)?$/, name)
  }
})

test('providers over the API are found on the PATH with their package version, without starting anything', async () => {
  const bin = await temporaryFolder('providers-bin')
  const program = path.join(bin, 'lib', 'gemini', 'bundle', 'gemini.js')
  await mkdir(path.dirname(program), { recursive: true })
  await writeFile(program, `#!/bin/sh\ntouch ${bin}/started\n`, { mode: 0o755 })
  await writeFile(path.join(bin, 'lib', 'gemini', 'package.json'), '{ "version": "1.2.3" }')
  await symlink('lib/gemini/bundle/gemini.js', path.join(bin, 'gemini'))
  const kernel = await boot({ plugins: [daemon, providers], env: { PATH: bin } })
  const list = (await kernel.request('GET', '/api/providers')).body.providers
  const one = (await kernel.request('GET', '/api/providers/gemini')).body
  assert.equal(
    list.find((entry: { name: string }) => entry.name === 'gemini'),
    one,
  )
  assert.equal([one.version, one.command, one.auth_status.state], ['1.2.3', 'gemini --acp', 'ready'])
  const absent = (await kernel.request('GET', '/api/providers/claude')).body
  assert.equal([absent.auth_status.state, absent.auth_status.code], ['missing', 'provider_cli_missing'])
  assert.match(absent.auth_status.message, 'npm install -g @agentclientprotocol/claude-agent-acp')
  assert.is((await kernel.request('GET', '/api/providers/nobody')).body.code, 'provider_not_found')
  assert.not(await stat(path.join(bin, 'started')).catch(() => undefined))
  await kernel.close()
  await rm(bin, { recursive: true })
})

test('ready means a checked login or says that it cannot be checked; a program on the caller PATH is reported', async () => {
  const bin = await temporaryFolder('providers-bin')
  const fresh = await temporaryFolder('providers-fresh')
  const home = await temporaryFolder('providers-home')
  const program = (folder: string, name: string) => writeFile(path.join(folder, name), '#!/bin/sh\n', { mode: 0o755 })
  await Promise.all([program(bin, 'gemini'), program(bin, 'codex-acp'), program(bin, 'codex'), program(fresh, 'qwen')])
  const slot = { name: 'key', secret_ref: 'env:NOT_THERE', target_env: 'KIMI_API_KEY', required: true }
  const config = { providers: { kimi: { command: path.join(bin, 'gemini'), credential_slots: [slot] } } }
  await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
  const kernel = await boot({ home, plugins: [daemon, providers], env: { PATH: `${bin}:/usr/bin:/bin` } })
  const stateOf = async (name: string, query = '') => {
    const { body } = await kernel.request('GET', `/api/providers${query}`)
    const { state, code, message } = body.providers.find((one: { name: string }) => one.name === name).auth_status
    return { state, code, message }
  }
  const gemini = await stateOf('gemini')
  assert.equal([gemini.state, gemini.code], ['ready', 'provider_login_unknown'])
  assert.match(gemini.message, /its login status is unknown; log in: gemini/)
  const codex = await stateOf('codex')
  assert.equal([codex.state, codex.code], ['unchecked', 'provider_login_unchecked'])
  assert.match(codex.message, /svc provider auth status codex/)
  await kernel.request('POST', '/api/providers/codex/auth/probe')
  assert.equal(await stateOf('codex'), { state: 'ready', code: undefined, message: undefined })
  const kimi = await stateOf('kimi')
  assert.equal([kimi.state, kimi.code], ['not_authenticated', 'provider_secret_missing'])
  assert.match(kimi.message, /credential key of the provider kimi needs NOT_THERE/)
  assert.is((await stateOf('qwen')).code, 'provider_cli_missing')
  const qwen = await stateOf('qwen', `?search_path=${encodeURIComponent(`relative:${fresh}:/usr/bin`)}`)
  assert.equal([qwen.state, qwen.code], ['missing', 'provider_cli_elsewhere'])
  assert.match(qwen.message, /qwen is not on the PATH that the daemon was started with; .*svc daemon restart/)
  await kernel.close()
  for (const folder of [bin, fresh, home]) await rm(folder, { recursive: true })
})

test('a login that no program can check is not reported as unchecked', async () => {
  const bin = await temporaryFolder('providers-bin')
  await writeFile(path.join(bin, 'codex-acp'), '#!/bin/sh\n', { mode: 0o755 })
  const kernel = await boot({ plugins: [daemon, providers], env: { PATH: bin } })
  const { state, code, message } = (await kernel.request('GET', '/api/providers/codex')).body.auth_status
  assert.equal([state, code], ['ready', 'provider_login_unknown'])
  assert.match(message, /codex, which checks the login, is not on the PATH.*npm install -g .*@openai\/codex/)
  await kernel.close()
  await rm(bin, { recursive: true })
})

test('the login is checked by a separate program; its output is not kept', async () => {
  const bin = await temporaryFolder('providers-bin')
  const kernel = await boot({ plugins: [daemon, providers], env: { PATH: `${bin}:/usr/bin:/bin` } })
  const probe = () => kernel.request('POST', '/api/providers/codex/auth/probe')
  assert.equal([(await probe()).status, (await probe()).body.code], [422, 'provider_cli_missing'])
  const script = '#!/bin/sh\necho secret-of-mine\n[ "$*" = "login status" ] && [ -e ./in ]\n'
  await writeFile(path.join(bin, 'codex'), script, { mode: 0o755 })
  await writeFile(path.join(bin, 'codex-acp'), script, { mode: 0o755 })
  const out = (await probe()).body
  assert.equal([out.auth_status.state, out.probe.exit_code], ['not_authenticated', 1])
  assert.match(out.auth_status.message, 'codex login')
  assert.not.match(JSON.stringify(out), 'secret-of-mine')
  await writeFile(path.join(kernel.home, 'in'), '')
  assert.is((await probe()).body.auth_status.state, 'ready')
  const { last_probe_at } = (await kernel.request('GET', '/api/providers/codex')).body.auth_status
  assert.match(last_probe_at, /^\d{4}-.*Z$/)
  const none = await kernel.request('POST', '/api/providers/gemini/auth/probe')
  assert.equal([none.status, none.body.code], [422, 'provider_probe_unavailable'])
  await kernel.close()
  await rm(bin, { recursive: true })
})

test.run()
