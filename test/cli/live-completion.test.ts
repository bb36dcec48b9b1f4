import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist } from './tree.js'

// The built command line completes names that a daemon knows, in the shells themselves.
const test = suite<{ daemon: FakeDaemon }>('live completion')
const bin = mkdtempSync(join(tmpdir(), 'svc-bin-'))
test.before(() => {
  writeFileSync(join(bin, 'svc'), `#!/bin/sh\nexec '${process.execPath}' '${dist}bin/svc' "$@"\n`)
  chmodSync(join(bin, 'svc'), 0o755)
})
test.after(() => rmSync(bin, { recursive: true }))
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
  const workspaces = [
    { id: 'ws_1', name: 'my own $place' },
    { id: 'ws_2', name: "it's" },
    { id: 'ws_3', name: 'bad\nname' },
  ]
  context.daemon.reply('GET /api/workspaces', 200, { workspaces })
  context.daemon.reply('GET /api/sessions', 200, {
    sessions: [
      { id: 'ses_a1', name: 'first', state: 'active' },
      { id: 'ses_b2', name: '', agent_name: 'report' },
    ],
  })
  const records = [
    { kind: 'automation.job', id: 'nightly' },
    { kind: 'vendor.thing', id: 'other' },
  ]
  context.daemon.reply('GET /api/resources', 200, { records })
})
test.after.each(({ daemon }) => daemon.remove())

const script = async (shell: string) => (await runCli(tmpdir(), ['completion', shell], { data, root: dist })).stdout

function inShell(shell: string, home: string, code: string): Promise<{ stdout: string; stderr: string }> {
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: home, SVC_HOME: home, LC_ALL: 'C.UTF-8', TERM: 'xterm' }
  const args = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell] ?? []
  // As a file: a script may be longer than an argument.
  const file = join(bin, 'asked')
  writeFileSync(file, code)
  return new Promise((resolve, reject) =>
    execFile(shell, [...args, file], { env, encoding: 'utf8' }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}`)) : resolve({ stdout, stderr }),
    ),
  )
}

/** How each shell is asked what it offers at the end of the words, a line each. */
const asking: Readonly<Record<string, (code: string, words: readonly string[]) => string>> = {
  bash: (code, words) =>
    `${code}\nCOMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // What `compadd` is given is what the shell then quotes and inserts.
  zsh: (code, words) =>
    `compdef() { :; }\ncompadd() { while [[ "$1" != -- ]]; do shift; done; shift; print -rl -- "$@"; }\n${code}\nwords=(${words.map(quoted).join(' ')}); CURRENT=${words.length}; _svc`,
  fish: (code, words) => `${code}\ncomplete -C ${quoted(words.join(' '))}`,
}
/** Asks again while nothing comes back; the last answer counts. */
async function unlessLate<T extends { readonly length: number }>(look: () => Promise<T>): Promise<T> {
  let found = await look()
  for (let more = 20; more > 0 && found.length === 0; more--) found = await look()
  return found
}
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const present = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0

test('rows with neither id nor name are completed by the first column of their list', async ({ daemon }) => {
  const tools = ['service__agent_list', 'mcp__files__read'].map(tool_id => ({ descriptor: { tool_id } }))
  daemon.reply('GET /api/tools', 200, { tools })
  const offered = async (...words: string[]) => {
    const env = { SVC_WORDS: words.map(word => `${word}\n`).join('') }
    return (await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env })).stdout
  }
  assert.is(await offered('tool', 'show', 'mcp'), 'mcp__files__read\t\n')
  assert.is(await offered('tool', 'call', ''), 'service__agent_list\t\nmcp__files__read\t\n')
})

test('targets and deliveries of the preceding bridge are completed, targets also by name', async ({ daemon }) => {
  const targets = [
    { bridge_id: 'bri_1', canonical_route: 'group:#ops', display_name: 'Ops room', capabilities: [] },
    { bridge_id: 'bri_1', canonical_route: 'peer:ada', display_name: 'Ada', capabilities: [] },
  ]
  daemon.reply('GET /api/bridges/bri_1/targets', 200, { bridge_id: 'bri_1', targets })
  daemon.reply('GET /api/bridges/bri_1/deliveries', 200, { deliveries: [{ id: 'dlv_1', state: 'failed' }] })
  const offered = async (...words: string[]) => {
    const env = { SVC_WORDS: words.map(word => `${word}\n`).join('') }
    return (await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env })).stdout
  }
  assert.is(await offered('bridge', 'resolve', 'bri_1', ''), 'group:#ops\tOps room\npeer:ada\tAda\n')
  assert.is(await offered('bridge', 'resolve', 'bri_1', 'Op'), 'Ops room\tgroup:#ops\n')
  assert.is(await offered('bridge', 'resolve', 'bri_2', ''), '')
  assert.is(await offered('bridge', 'resend', 'bri_1', ''), 'dlv_1\tfailed\n')
})

for (const [shell, ask] of Object.entries(asking)) {
  if (!present(shell)) {
    console.log(`NOT TESTED: ${shell} is not installed`)
    continue
  }
  const offersOnce = async (home: string, line: string) => {
    const words = line.split(' ')
    const { stdout, stderr } = await inShell(shell, home, ask(await script(shell), words))
    assert.is(stderr, '', line)
    const typed = words.at(-1) as string
    return stdout
      .split('\n')
      .map(text => text.split('\t')[0] as string)
      .filter(text => text !== '' && text.startsWith(typed))
  }
  /** The values offered: on a slow machine the daemon may answer too late, and then nothing or the options alone are offered. */
  const offers = (home: string, line: string) =>
    unlessLate(async () => {
      const offered = await offersOnce(home, line)
      return line.endsWith(' ') && offered.every(text => text.startsWith('--')) ? [] : offered
    })

  test(`${shell} completes known models, limited to a named provider`, async ({ daemon }) => {
    const models = [
      { provider_id: 'codex', model_id: 'gpt-a' },
      { provider_id: 'claude', model_id: 'opus-b' },
    ]
    daemon.reply('GET /api/model-catalog/models', 200, { models })
    daemon.reply('GET /api/providers', 200, { providers: [{ name: 'codex' }, { name: 'claude' }] })
    assert.equal(await offers(daemon.home, 'svc agent create helper --model '), ['gpt-a', 'opus-b'])
    assert.equal(await offers(daemon.home, 'svc provider models set codex '), ['gpt-a'])
    assert.equal(await offers(daemon.home, 'svc provider models list cl'), ['claude'])
  })

  test(`${shell} completes ids and names of the daemon, with quotes where needed`, async ({ daemon: { home } }) => {
    assert.equal(await offers(home, 'svc session events '), ['ses_a1', 'ses_b2'])
    assert.equal(await offers(home, 'svc session events ses_b'), ['ses_b2'])
    assert.equal(await offers(home, 'svc session events fi'), ['first'], 'by its name')
    assert.equal(await offers(home, 'svc workspace info i'), [shell === 'bash' ? "it\\'s" : "it's"])
    assert.equal(await offers(home, 'svc resource get automation.job '), ['nightly'])
    const places = await offers(home, 'svc session list --workspace ')
    const plain = ["it's", 'my own $place']
    assert.equal(places.sort(), shell === 'bash' ? ["it\\'s", 'my\\ own\\ \\$place'] : plain)
    assert.ok((await offers(home, 'svc session events --fo')).includes('--follow'))
    assert.ok((await offers(home, 'svc sess')).includes('session'))
  })

  test(`${shell} completes jobs, triggers, settings and their values under the documented names`, async ({
    daemon,
  }) => {
    const keys = [
      { key: 'log.level', value: 'info', choices: ['debug', 'info'] },
      { key: 'log.file', value: 'x' },
      { key: 'http.port', value: 1 },
    ]
    daemon.reply('GET /api/settings/keys', 200, { keys })
    daemon.reply('GET /api/automation/jobs', 200, { jobs: [{ id: 'job_a1', name: 'night' }] })
    const { home } = daemon
    assert.equal(await offers(home, 'svc job trigger '), ['job_a1'])
    assert.equal(await offers(home, 'svc job trigger ni'), ['night'])
    for (const verb of ['create', 'list', 'history']) {
      const offered = await offers(home, 'svc triggers ')
      assert.ok(offered.includes(verb), `${verb} in ${offered}`)
    }
    assert.ok((await offers(home, 'svc trigger create --ev')).includes('--event'))
    assert.ok((await offers(home, 'svc jo')).includes('job'))
    assert.ok((await offers(home, 'svc config set log.')).includes('log.level'))
    assert.equal(await offers(home, 'svc config set log.level '), ['debug', 'info'])
  })

  test(`${shell} completes nothing without a responsive daemon`, async ({ daemon }) => {
    daemon.answer('GET /api/sessions', () => {})
    assert.not.ok((await offersOnce(daemon.home, 'svc session events ')).some(text => text.startsWith('ses_')))
    assert.not.ok(
      (await offersOnce(join(daemon.home, 'none'), 'svc session events ')).some(text => text.startsWith('ses_')),
    )
  })
}

test('completion of an unresponsive daemon gives up and prints nothing', async ({ daemon }) => {
  daemon.answer('GET /api/sessions', () => {})
  const env = { SVC_WORDS: 'session\nevents\n\n' }
  assert.equal(await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env }), {
    code: 0,
    stdout: '',
    stderr: '',
  })
})

test('completion of a long list reads its first page, and all pages only if needed', async ({ daemon }) => {
  const sessions = Array.from({ length: 300 }, (_, i) => ({ id: `ses_${i}`, workspace_id: i < 150 ? 'ws_1' : 'ws_2' }))
  const asks = async (words: string) => {
    const env = { SVC_WORDS: words }
    const stdout = await unlessLate(async () => {
      daemon.asked.length = 0
      return (await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env })).stdout
    })
    return { ids: stdout.split('\n').length - 1, urls: daemon.asked.map(({ url }) => url) }
  }
  daemon.reply('GET /api/sessions', 200, { sessions: sessions.slice(0, 100) })
  assert.equal(await asks('session\nevents\n\n'), { ids: 100, urls: ['/api/sessions?limit=100'] })
  daemon.reply('GET /api/sessions', 200, { sessions })
  assert.equal(await asks('session\nevents\nses_29\n'), { ids: 11, urls: ['/api/sessions'] })
  daemon.answer('GET /api/sessions', (reply, { url }) => {
    const isPage = url.includes('limit=')
    reply.statusCode = isPage ? 400 : 200
    reply.end(JSON.stringify(isPage ? { error: {} } : { sessions }))
  })
  const whole = await asks('session\nevents\n\n')
  assert.equal(whole, { ids: 100, urls: ['/api/sessions?limit=100', '/api/sessions'] }, 'pages are shorter there')
})

test('hostile words and replies complete nothing and print nothing', async ({ daemon }) => {
  for (const SVC_WORDS of [
    '',
    '\n',
    'x',
    'session\nevents\n--\n',
    'session\n\x1b\n',
    '--workspace',
    'session\nlist\n--workspace\nx\n',
  ]) {
    const { code, stderr } = await runCli(daemon.home, ['completion', 'words'], {
      data,
      root: dist,
      env: { SVC_WORDS },
    })
    assert.equal([code, stderr], [0, ''])
  }
  for (const body of [null, [], { sessions: [null, 1, { id: 7 }, { id: 'a\tb' }, { id: '\x1b[2J' }] }]) {
    daemon.reply('GET /api/sessions', 200, body)
    const env = { SVC_WORDS: 'session\nevents\n\n' }
    const ran = await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env })
    assert.equal(ran, { code: 0, stdout: '', stderr: '' })
  }
})

test.run()
