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

const scripts = new Map<string, Promise<{ readonly stdout: string }>>()
async function script(shell: string): Promise<string> {
  const written = scripts.get(shell) ?? runCli(tmpdir(), ['completion', shell], { data, root: dist })
  scripts.set(shell, written)
  return (await written).stdout
}

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

/** A line behind the answer to each question. */
const BEHIND = '@answered@'
interface Asking {
  /** Comes before the script of the shell. */
  readonly first?: string
  /** Prints what the shell offers at the end of the words, a line each. */
  readonly ask: (words: readonly string[]) => string
}
/** How each shell is asked. Reading the script takes it longer than answering, so that one process answers several questions. */
const asking: Readonly<Record<string, Asking>> = {
  bash: {
    ask: words =>
      `COMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  // What `compadd` is given is what the shell then quotes and inserts.
  zsh: {
    first: 'compdef() { :; }\ncompadd() { while [[ "$1" != -- ]]; do shift; done; shift; print -rl -- "$@"; }',
    ask: words => `words=(${words.map(quoted).join(' ')}); CURRENT=${words.length}; _svc`,
  },
  fish: { ask: words => `complete -C ${quoted(words.join(' '))}` },
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

for (const [shell, { first = '', ask }] of Object.entries(asking)) {
  if (!present(shell)) {
    console.log(`NOT TESTED: ${shell} is not installed`)
    continue
  }
  const offersOnce = async (home: string, lines: readonly string[]) => {
    const questions = lines.map(line => `${ask(line.split(' '))}\necho ${BEHIND}`)
    const { stdout, stderr } = await inShell(shell, home, [first, await script(shell), ...questions].join('\n'))
    assert.is(stderr, '', lines.join('\n'))
    const answers = stdout.split(`${BEHIND}\n`)
    assert.is(answers.length, lines.length + 1, stdout)
    return lines.map((line, n) => {
      const offered = answers[n]?.split('\n').map(text => text.split('\t')[0] as string) ?? []
      return offered.filter(text => text !== '' && text.startsWith(line.split(' ').at(-1) as string))
    })
  }
  /** On a slow machine the daemon may answer too late, and then nothing or the options alone are offered. */
  const isLate = (line: string, offered: readonly string[]) =>
    offered.every(text => line.endsWith(' ') && text.startsWith('--'))
  /** The values offered at the end of each line. */
  const offers = async (home: string, ...lines: readonly string[]) => {
    const found = new Map<string, string[]>()
    const missing = () => lines.filter(line => isLate(line, found.get(line) ?? []))
    for (let more = 20; more >= 0 && missing().length > 0; more--) {
      const late = missing()
      for (const [n, offered] of (await offersOnce(home, late)).entries()) found.set(late[n] as string, offered)
    }
    return lines.map(line => {
      const offered = found.get(line) as string[]
      return isLate(line, offered) ? [] : offered
    })
  }

  test(`${shell} completes known models, limited to a named provider`, async ({ daemon }) => {
    const models = [
      { provider_id: 'codex', model_id: 'gpt-a' },
      { provider_id: 'claude', model_id: 'opus-b' },
    ]
    daemon.reply('GET /api/model-catalog/models', 200, { models })
    daemon.reply('GET /api/providers', 200, { providers: [{ name: 'codex' }, { name: 'claude' }] })
    assert.equal(
      await offers(
        daemon.home,
        'svc agent create helper --model ',
        'svc provider models set codex ',
        'svc provider models list cl',
      ),
      [['gpt-a', 'opus-b'], ['gpt-a'], ['claude']],
    )
  })

  test(`${shell} completes ids and names of the daemon, with quotes where needed`, async ({ daemon: { home } }) => {
    const [events, of, byName, escaped, jobs, places, options, commands] = await offers(
      home,
      'svc session events ',
      'svc session events ses_b',
      'svc session events fi',
      'svc workspace info i',
      'svc resource get automation.job ',
      'svc session list --workspace ',
      'svc session events --fo',
      'svc sess',
    )
    assert.equal(events, ['ses_a1', 'ses_b2'])
    assert.equal(of, ['ses_b2'])
    assert.equal(byName, ['first'], 'by its name')
    assert.equal(escaped, [shell === 'bash' ? "it\\'s" : "it's"])
    assert.equal(jobs, ['nightly'])
    const plain = ["it's", 'my own $place']
    assert.equal(places?.sort(), shell === 'bash' ? ["it\\'s", 'my\\ own\\ \\$place'] : plain)
    assert.ok(options?.includes('--follow'))
    assert.ok(commands?.includes('session'))
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
    const [jobs, names, verbs, options, commands, settings, values] = await offers(
      daemon.home,
      'svc job trigger ',
      'svc job trigger ni',
      'svc triggers ',
      'svc trigger create --ev',
      'svc jo',
      'svc config set log.',
      'svc config set log.level ',
    )
    assert.equal([jobs, names], [['job_a1'], ['night']])
    for (const verb of ['create', 'list', 'history']) assert.ok(verbs?.includes(verb), `${verb} in ${verbs}`)
    assert.ok(options?.includes('--event'))
    assert.ok(commands?.includes('job'))
    assert.ok(settings?.includes('log.level'))
    assert.equal(values, ['debug', 'info'])
  })

  test(`${shell} completes nothing without a responsive daemon`, async ({ daemon }) => {
    daemon.answer('GET /api/sessions', () => {})
    for (const home of [daemon.home, join(daemon.home, 'none')]) {
      const [offered] = await offersOnce(home, ['svc session events '])
      assert.not.ok(offered?.some(text => text.startsWith('ses_')))
    }
  })
}

test('completion of an unresponsive daemon gives up and prints nothing', async ({ daemon }) => {
  daemon.answer('GET /api/sessions', () => {})
  const env = { SVC_WORDS: 'session\nevents\n\n' }
  const warnings: Error[] = []
  const keep = (warning: Error) => warnings.push(warning)
  process.on('warning', keep)
  const ran = await runCli(daemon.home, ['completion', 'words'], { data, root: dist, env })
  await new Promise(setImmediate)
  process.off('warning', keep)
  assert.equal(ran, { code: 0, stdout: '', stderr: '' })
  assert.equal(warnings, [], 'Node 24 warns of a negative time')
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
