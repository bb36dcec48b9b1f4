import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runCli } from './fake-daemon.js'
import { data, dist } from './tree.js'

const folder = mkdtempSync(join(tmpdir(), 'svc-init-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

/** A command line on a home of its own, with programs that end with these codes on its path. */
function world(name: string, programs: Readonly<Record<string, number>> = {}) {
  const [home, bin] = [join(folder, name, 'home'), join(folder, name, 'bin')]
  mkdirSync(bin, { recursive: true })
  for (const [program, code] of Object.entries(programs)) {
    writeFileSync(join(bin, program), `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 })
  }
  const env = { PATH: bin, SVC_HOME: home, HOME: folder }
  return { home, svc: (...argv: string[]) => runCli(home, argv, { data, root: dist, env }) }
}

test('init without an agent names the install command, writes the recommended mode and prints the next steps', async () => {
  const { home, svc } = world('none')
  const { code, stdout } = await svc('init', '--yes')
  assert.is(code, 0)
  assert.match(stdout, 'No agent is installed')
  assert.match(stdout, 'npm install -g')
  assert.match(stdout, 'svc run --agent report')
  assert.equal(JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')), {
    permissions: { mode: 'approve-reads' },
    $schema: './config.schema.json',
  })
})

test('a logged-in agent is preferred to one without a login', async () => {
  const { home, svc } = world('two', { 'claude-agent-acp': 1, 'codex-acp': 0, codex: 0 })
  const { stdout } = await svc('init', '--yes')
  assert.match(stdout, '✗ Claude: not logged in: claude-agent-acp --cli auth login')
  assert.match(stdout, '✓ Codex: logged in')
  const { defaults } = JSON.parse(readFileSync(join(home, 'config.json'), 'utf8'))
  assert.equal(defaults, { provider: 'codex' })
})

test('a named endpoint is written and kept; an invalid URL is refused', async () => {
  const { home, svc } = world('endpoint')
  const url = 'http://127.0.0.1:29996/v1'
  const { code, stdout } = await svc('init', '--yes', '--endpoint', `${url}/`)
  assert.is(code, 0)
  assert.match(stdout, `✗ svc-agent: ${url} (--endpoint; does not answer)`)
  const written = () => JSON.parse(readFileSync(join(home, 'config.json'), 'utf8'))
  assert.equal(written().providers, { svc: { base_url: url } })
  assert.equal(written().defaults, { provider: 'svc' })
  assert.match((await svc('init', '--yes')).stdout, 'nothing to change in')
  for (const wrong of ['somewhere', 'ftp://host/v1', 'http://user:secret@host/v1']) {
    const refused = await svc('init', '--yes', '--endpoint', wrong)
    assert.is(refused.code, 2)
    assert.match(refused.stderr, 'endpoint_invalid')
  }
  assert.equal(written().providers, { svc: { base_url: url } })
})

test('existing settings and comments stay; a file that is not JSON is not changed', async () => {
  const { home, svc } = world('kept', { gemini: 0 })
  mkdirSync(home, { recursive: true })
  const file = join(home, 'config.json')
  writeFileSync(file, '{\n  // mine\n  "permissions": { "mode": "deny-all" },\n  "http": { "port": 0 }\n}\n')
  await svc('init', '--yes')
  const text = readFileSync(file, 'utf8')
  assert.match(text, '// mine')
  assert.match(text, '"mode": "deny-all"')
  assert.match(text, '"provider": "gemini"')
  assert.match((await svc('init', '--yes')).stdout, 'nothing to change in')
  writeFileSync(file, '{ broken')
  const refused = await svc('init', '--yes')
  assert.is(refused.code, 7)
  assert.match(refused.stderr, 'config_invalid')
  assert.is(readFileSync(file, 'utf8'), '{ broken')
})

test('bare svc shows the daemon and three commands; a stray option is refused', async () => {
  const { home, svc } = world('bare')
  const { code, stdout } = await svc()
  assert.is(code, 0)
  assert.match(stdout, 'The daemon is not running')
  assert.is(stdout.match(/^ {2}svc /gm)?.length, 3)
  assert.is((await svc('--bogus')).code, 2)
  assert.equal(JSON.parse((await svc('--json')).stdout).running, false)
  assert.not.ok(existsSync(home))
})

test.run()
