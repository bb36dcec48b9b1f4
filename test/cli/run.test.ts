import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FakeDaemon, runCli } from './fake-daemon.js'

const test = suite<{ daemon: FakeDaemon }>('run')
test.before.each(async context => {
  context.daemon = await FakeDaemon.start()
})
test.after.each(({ daemon }) => daemon.remove())

const things = [
  {
    id: 'thg_1',
    state: 'open',
    size: 2048,
    created_at: new Date(Date.now() - 61_000).toISOString(),
    note: 'x'.repeat(200),
  },
  { id: 'thg_2', state: 'closed', size: 1, created_at: null, note: 'evil\x1b[2J\nname' },
]

test('a list is printed as a table', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things, page: { total: 2 } })
  const { code, stdout, stderr } = await runCli(daemon.home, ['thing', 'list'], {
    columns: 60,
    tty: true,
    env: { NO_COLOR: '1' },
  })
  assert.is(code, 0)
  assert.is(stderr, '')
  const lines = stdout.trimEnd().split('\n')
  assert.match(lines[0] as string, /^ID +STATE +SIZE +MADE +NOTE$/)
  assert.match(lines[1] as string, /^thg_1 +open +2\.0 KiB +1m ago +x+…$/)
  assert.match(lines[2] as string, /^thg_2 +closed +1 B +- +evil␛\[2J name$/)
  assert.ok(lines.every(line => line.length <= 60))
})

test('the structured forms print the body unchanged', async ({ daemon }) => {
  const body = { things, page: { total: 2 } }
  daemon.reply('GET /api/things', 200, body)
  const json = await runCli(daemon.home, ['thing', 'list', '--json'], { tty: true })
  assert.is(json.stdout, `${JSON.stringify(body, undefined, 2)}\n`)
  assert.is((await runCli(daemon.home, ['--json', 'thing', 'list'])).stdout, json.stdout)
  assert.is((await runCli(daemon.home, ['thing', 'list', '--output=json'])).stdout, json.stdout)
  const jsonl = await runCli(daemon.home, ['thing', 'list', '-o', 'jsonl'])
  assert.is(jsonl.stdout, things.map(thing => `${JSON.stringify(thing)}\n`).join(''))
  const toon = await runCli(daemon.home, ['thing', 'list', '-o', 'toon'])
  assert.match(toon.stdout, 'things[2]{id,state,size,created_at,note}:\n  thg_1,open,2048,')
  assert.is((await runCli(daemon.home, ['thing', 'list', '--quiet'])).stdout, 'thg_1\nthg_2\n')
})

test('an empty list prints a message', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [] })
  assert.is((await runCli(daemon.home, ['thing', 'list'])).stdout, 'no things yet\n')
  assert.is((await runCli(daemon.home, ['thing', 'list', '-o', 'jsonl'])).stdout, '')
})

test('colours are printed only on a terminal that supports them', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things })
  const colored = async (options: object) =>
    (await runCli(daemon.home, ['thing', 'list'], options)).stdout.includes('\x1b')
  assert.is(await colored({ tty: true }), true)
  assert.is(await colored({ tty: false }), false)
  assert.is(await colored({ tty: true, env: { NO_COLOR: '1' } }), false)
  assert.is(await colored({ tty: true, env: { TERM: 'dumb' } }), false)
})

test('options become the query and are validated before the request', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things })
  await runCli(daemon.home, ['thing', 'list', '--state', 'open', '--limit=5', '--no-deep'])
  assert.equal(daemon.asked[0]?.url, '/api/things?state=open&limit=5&deep=false')
  const wrong = [
    [['thing', 'list', '--state', 'ajar'], '--state is one of open, closed, not "ajar"'],
    [['thing', 'list', '--limit', 'many'], '--limit takes an integer, not "many"'],
    [['thing', 'list', '--nope'], 'unknown option --nope'],
    [['thing', 'list', 'extra'], 'unexpected argument "extra"'],
    [['thing', 'list', '-o', 'xml'], 'unknown output "xml"; choose human, json, jsonl, toon'],
    [['thing', 'remove'], 'id is missing'],
    [['thing', 'remove', '..'], 'id must not be ".."'],
    [['thing', 'make'], '--name is missing'],
  ] as const
  for (const [argv, text] of wrong) {
    const { code, stdout, stderr } = await runCli(daemon.home, argv)
    assert.is(code, 2, argv.join(' '))
    assert.is(stdout, '')
    assert.ok(stderr.startsWith(`error: ${text}`), stderr)
    assert.match(stderr, /\n {2}next: svc (?:thing|help)/)
  }
  assert.is(daemon.asked.length, 1)
})

test('arguments and options become the body', async ({ daemon }) => {
  daemon.reply('POST /api/things', 201, { thing: { id: 'thg_9', created_at: '2030-01-31T09:00:00.000Z' } })
  const make = ['thing', 'make', 'sub/..//dir', '--name', 'n', '--kind', 'a', '--tags', 'x', '--tags', 'y']
  const more = ['--count', '3', '--settings', '{"deep":true}', '--message-id', 'm']
  const { code, stdout } = await runCli(daemon.home, [...make, ...more], { cwd: '/tmp' })
  assert.is(code, 0)
  assert.match(stdout, /^id {4}thg_9\nmade {2}2030-01-31 \d\d:\d\d:\d\d \(in \d+[yd]\)\n$/)
  assert.equal(daemon.asked[0]?.body, {
    root: '/tmp/dir',
    name: 'n',
    kind: 'a',
    tags: ['x', 'y'],
    count: 3,
    settings: { deep: true },
    messageId: 'm',
  })
  assert.is((await runCli(daemon.home, ['thing', 'make', '--name', 'n', '--quiet'])).stdout, 'thg_9\n')
  assert.equal(daemon.asked[1]?.body, { root: daemon.home, name: 'n' })
  // A value may begin with a dash; what looks like an option is one, and is missed as a value.
  await runCli(daemon.home, ['thing', 'make', '--name', '- n', '--count', '-3'])
  assert.equal(daemon.asked[2]?.body, { root: daemon.home, name: '- n', count: -3 })
  assert.is((await runCli(daemon.home, ['thing', 'make', '--name', '--count', '3'])).code, 2)
  assert.is(daemon.asked.length, 3)
})

test('a body is given whole, and options override its members', async ({ daemon }) => {
  daemon.reply('POST /api/things', 201, { thing: { id: 'thg_9' } })
  writeFileSync(join(daemon.home, 'body.json'), '{"name":"file","root":"/r"}')
  const cases = [
    [['--data', '{"name":"n","root":"/r"}'], { name: 'n', root: '/r' }],
    [['--data', '{"name":"n"}', '--name', 'other'], { name: 'other', root: daemon.home }],
    [['--data', '@body.json'], { name: 'file', root: '/r' }],
    [['--data', '-'], { name: 'stdin', root: '/r' }],
  ] as const
  for (const [options, body] of cases) {
    const ran = await runCli(daemon.home, ['thing', 'make', ...options], { stdin: '{"name":"stdin","root":"/r"}' })
    assert.is(ran.code, 0, ran.stderr)
    assert.equal(daemon.asked.at(-1)?.body, body)
  }
  for (const data of ['[1]', '{', '@missing.json']) {
    assert.is((await runCli(daemon.home, ['thing', 'make', '--data', data])).code, 2)
  }
  assert.is(daemon.asked.length, cases.length)
})

test('a reply without a body prints a sentence', async ({ daemon }) => {
  daemon.reply('DELETE /api/things/a%2Fb', 204)
  assert.is((await runCli(daemon.home, ['thing', 'remove', 'a/b'])).stdout, 'thing a/b removed\n')
  assert.is((await runCli(daemon.home, ['thing', 'remove', 'a/b', '--quiet'])).stdout, '')
  assert.is((await runCli(daemon.home, ['thing', 'remove', 'a/b', '--json'])).stdout, '')
})

test('path parameters are resolved; a nested group without a verb runs its list', async ({ daemon }) => {
  daemon.reply('GET /api/things/t1/owner', 200, { owner: { place_id: 'plc_1' } })
  daemon.reply('GET /api/places/plc_1/things/t1/parts', 200, { parts: [{ sequence: 1, text: 'one' }] })
  // No `parts t1`: what follows the group would be a verb.
  const { code, stdout } = await runCli(daemon.home, ['thing', 'parts', 'list', 't1'])
  assert.is(code, 0)
  assert.is(stdout, 'NO  TEXT\n1   one\n')
  assert.match(
    (await runCli(daemon.home, ['thing', 'parts'])).stderr,
    'usage'.length > 0 ? 'thing parts list <id>' : '',
  )
})

test('text is printed unchanged except for control characters', async ({ daemon }) => {
  daemon.reply('GET /api/things/t/text', 200, { text: '# Title\n\n\x1b[31mred\x1b[0m line' })
  assert.is((await runCli(daemon.home, ['thing', 'text', 't'], { tty: true })).stdout, '# Title\n\nred line\n')
})

test('errors print text and next step for people, the body for programs, and exit by status', async ({ daemon }) => {
  const body = { error: 'no thing t', code: 'thing_not_found', details: { id: 'unknown', next: 'svc thing list' } }
  daemon.reply('DELETE /api/things/t', 404, body)
  const human = await runCli(daemon.home, ['thing', 'remove', 't'])
  assert.equal(human, {
    code: 4,
    stdout: '',
    stderr: 'error: no thing t\n  code: thing_not_found\n  id: unknown\n  next: svc thing list\n',
  })
  const json = await runCli(daemon.home, ['thing', 'remove', 't', '--json'])
  assert.equal(json, { code: 4, stdout: `${JSON.stringify(body, undefined, 2)}\n`, stderr: '' })
  const jsonl = await runCli(daemon.home, ['thing', 'remove', 't', '-o', 'jsonl'])
  assert.is(jsonl.stdout, `${JSON.stringify(body)}\n`)
  const codes = { 400: 7, 401: 6, 403: 6, 404: 4, 409: 5, 413: 7, 415: 7, 422: 7, 429: 8, 500: 1, 503: 8, 507: 8 }
  for (const [status, code] of Object.entries(codes)) {
    daemon.reply('DELETE /api/things/t', Number(status), { error: 'no' })
    assert.is((await runCli(daemon.home, ['thing', 'remove', 't'])).code, code, status)
  }
  daemon.answer('DELETE /api/things/t', response => response.writeHead(502).end('<html>bad gateway</html>'))
  assert.match((await runCli(daemon.home, ['thing', 'remove', 't'])).stderr, 'error: <html>bad gateway</html>')
  daemon.answer('DELETE /api/things/t', response => response.destroy())
  assert.is((await runCli(daemon.home, ['thing', 'remove', 't'])).code, 1)
})

test('a missing daemon exits with 3 and the next step', async ({ daemon }) => {
  const { home } = daemon
  await daemon.stop()
  const human = await runCli(home, ['thing', 'list'])
  assert.is(human.code, 3)
  const outputs = [
    `error: no daemon is running at ${home}; start one: svc daemon start`,
    '  code: no_daemon',
    `  cause: connect ENOENT ${home}/daemon.sock`,
    '  next: svc daemon start',
  ]
  assert.is(human.stderr, `${outputs.join('\n')}\n`)
  const json = await runCli(home, ['thing', 'list', '--json'])
  assert.is(json.code, 3)
  assert.is(JSON.parse(json.stdout).code, 'no_daemon')
  assert.is((await runCli(join(home, 'missing'), ['thing', 'list'])).code, 3)
  assert.equal(await runCli(home, ['daemon', 'stop']), {
    code: 0,
    stdout: `no daemon is running at ${home}\n`,
    stderr: '',
  })
})

test('the socket is found by SVC_SOCKET, then by the configuration', async ({ daemon }) => {
  daemon.reply('GET /api/things', 200, { things: [] })
  const home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  const socket = join(daemon.home, 'daemon.sock')
  try {
    assert.is((await runCli(home, ['thing', 'list'], { env: { SVC_SOCKET: socket } })).code, 0)
    writeFileSync(join(home, 'config.json'), `// where\n{ "daemon": { "socket": ${JSON.stringify(socket)}, }, }`)
    assert.is((await runCli(home, ['thing', 'list'])).code, 0)
    assert.is((await runCli(home, ['thing', 'list'], { env: { SVC_SOCKET: join(home, 'none') } })).code, 3)
  } finally {
    rmSync(home, { recursive: true })
  }
})

test('a command that needs a workspace names the option when there is none', async ({ daemon }) => {
  daemon.hasWorkspace('ws_1', '/elsewhere')
  const { code, stderr } = await runCli(daemon.home, ['thing', 'here'])
  assert.is(code, 2)
  assert.match(stderr, 'no workspace encloses this directory')
  assert.match(stderr, 'next: svc thing here <place_id>')
  daemon.reply('GET /api/places/ws_1/things', 200, { id: 'one' })
  assert.is((await runCli(daemon.home, ['thing', 'here'], { cwd: '/elsewhere' })).code, 0)
})

test('help and usage errors have their streams and exit codes', async ({ daemon }) => {
  const help = await runCli(daemon.home, ['help'])
  assert.is(help.code, 0)
  for (const argv of [['--help'], ['-h']]) assert.equal(await runCli(daemon.home, argv), help)
  for (const text of [/^ {2}thing +.*\blist\b/m, /^ {2}daemon +.*\bstart\b/m, /^ {2}version +Print/m, /svc 1\.2\.3/])
    assert.match(help.stdout, text)
  const one = await runCli(daemon.home, ['thing', 'make', '--help'])
  assert.is(one.code, 0)
  for (const text of ['[root]', '--kind <a|b>', '--name <text>', '(required)', '--data <json>', '--tags <text>']) {
    assert.ok(one.stdout.includes(text), text)
  }
  assert.equal(await runCli(daemon.home, ['help', 'thing', 'make']), one)
  const group = await runCli(daemon.home, ['thing'])
  assert.is(group.code, 2)
  assert.is(group.stdout, '')
  assert.is((await runCli(daemon.home, ['thing', '--help'])).stdout, group.stderr)
  const meant = [
    [['thing', 'lits'], 'svc thing list'],
    [['thnig'], 'svc thing'],
    [['thnig', 'list', 'x'], 'svc thing list'],
    [['parts'], 'svc thing parts'],
    [['thing', 'ls'], 'svc thing list'],
    [['thing', 'uninstall'], 'svc thing remove'],
    [['list'], 'svc backup list, svc thing list'],
    [['thing', 'list', '--limti', '3'], '--limit'],
    [['thing', 'list', '--quite'], '--quiet'],
  ] as const
  for (const [argv, name] of meant)
    assert.match((await runCli(daemon.home, argv)).stderr, `did you mean ${name}`, argv.join(' '))
  const typo = await runCli(daemon.home, ['thing', 'lsit'])
  assert.equal(typo, {
    code: 2,
    stdout: '',
    stderr:
      'error: there is no command "thing lsit"; did you mean svc thing list?\n  code: usage\n  next: svc thing list\n',
  })
  const strange = await runCli(daemon.home, ['thing', 'status'])
  assert.match(strange.stderr, /no command "thing status"\n.*\n {2}next: svc thing --help/)
  assert.is((await runCli(daemon.home, ['zzz', '--json'])).code, 2)
  assert.is((await runCli(daemon.home, ['--nope'])).code, 2)
  assert.is(daemon.asked.length, 0)
})

test('version includes drop-ins: commands of the home are merged and never replace built-in ones', async ({
  daemon,
}) => {
  assert.is((await runCli(daemon.home, ['version'])).stdout, '1.2.3\n')
  assert.is((await runCli(daemon.home, ['--version'])).stdout, '1.2.3\n')
  assert.equal(JSON.parse((await runCli(daemon.home, ['version', '--json'])).stdout), { version: '1.2.3' })
})

test('a handwritten command gets its context', async ({ daemon }) => {
  mkdirSync(join(daemon.home, 'commands'))
  writeFileSync(
    join(daemon.home, 'commands', 'things.js'),
    `export async function peek({ args, options, client, out, cwd, readFile, stdin, fault }) {
      if (args.id === 'gone') fault('thing_not_found', 'no such thing', 'svc thing list')
      const reply = await client.request('GET', '/api/things')
      if (out.json) return out.value({ args, options, n: reply.things.length, cwd, text: await readFile('-') })
      out.line(out.color('red', args.id) + ' \\u001b[2J' + (await stdin()))
      out.table(reply.things, [{ header: 'id', path: 'id' }])
    }`,
  )
  daemon.reply('GET /api/things', 200, { things })
  const options = [
    { name: 'depth', type: 'integer' as const, summary: '' },
    { name: 'all', type: 'boolean' as const, summary: '' },
  ]
  const entry = { kind: 'module' as const, path: 'thing peek', summary: 'Peek', args: [{ name: 'id' }], options }
  const data = { version: '1', routes: [], commands: [{ ...entry, module: 'commands/things.js', export: 'peek' }] }
  const json = await runCli(daemon.home, ['thing', 'peek', 't', '--depth', '2', '--all', '--json'], {
    data,
    stdin: 'in',
  })
  assert.equal(JSON.parse(json.stdout), {
    args: { id: 't' },
    options: { depth: 2, all: true },
    n: 2,
    cwd: daemon.home,
    text: 'in',
  })
  const human = await runCli(daemon.home, ['thing', 'peek', 't'], { data, stdin: 'in' })
  assert.is(human.stdout, 't in\nID\nthg_1\nthg_2\n')
  const gone = await runCli(daemon.home, ['thing', 'peek', 'gone'], { data })
  assert.equal(gone, {
    code: 4,
    stdout: '',
    stderr: 'error: no such thing\n  code: thing_not_found\n  next: svc thing list\n',
  })
  assert.is((await runCli(daemon.home, ['thing', 'peek', 't', '--depth', 'x'], { data })).code, 2)
})

test('a fault of a handwritten command exits with the code of its status', async ({ daemon }) => {
  mkdirSync(join(daemon.home, 'commands'))
  const errors = new URL('../../dist/plugin.js', import.meta.url).href
  writeFileSync(
    join(daemon.home, 'commands', 'things.js'),
    `import { Fault } from ${JSON.stringify(errors)}
    export async function peek({ args }) {
      throw new Fault('thing_' + args.status, Number(args.status), 'it failed', { next: 'svc thing list' })
    }`,
  )
  const entry = {
    kind: 'module' as const,
    path: 'thing peek',
    summary: 'Peek',
    args: [{ name: 'status' }],
    options: [],
  }
  const data = { version: '1', routes: [], commands: [{ ...entry, module: 'commands/things.js', export: 'peek' }] }
  for (const [status, exit] of [
    [404, 4],
    [409, 5],
    [403, 6],
    [422, 7],
    [503, 8],
    [500, 1],
  ] as const) {
    const { code, stderr } = await runCli(daemon.home, ['thing', 'peek', String(status)], { data })
    assert.equal([code, stderr], [exit, `error: it failed\n  code: thing_${status}\n  next: svc thing list\n`])
  }
})

test.run()
