import type { Step } from '../../fixtures/scripted-model.js'

/** One repair in a small repository: its check fails before, and passes after what a model does with the tools. */
export interface Repair {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  /** Argument list of the check. */
  readonly check: readonly string[]
  readonly steps: readonly Step[]
  /** Titles of calls that the person rejects. */
  readonly rejects?: readonly string[]
  /** What the results of tools say, in order; a result that is not named may say anything. */
  readonly says?: readonly string[]
}

const use = (name: string, input: unknown): Step => ({ calls: [{ name, input }] })
const read = (path: string, more: object = {}) => use('read', { path, ...more })
const edit = (path: string, old_text: string, new_text: string, more: object = {}) =>
  use('edit', { path, old_text, new_text, ...more })
const write = (path: string, content: string) => use('write', { path, content })
const run = (command: string, more: object = {}) => use('run', { command, ...more })

const check = ['node', 'check.js'] as const
const test = run('node check.js')
/** A check in JavaScript, with `assert` at hand. */
const checks = (code: string) => `const assert = require('node:assert')\n${code}\n`

const manyLines = (at: number, line: string) =>
  Array.from({ length: 4000 }, (_, index) =>
    index + 1 === at ? line : `exports.f${index + 1} = () => ${index + 1}`,
  ).join('\n')

export const repairs: readonly Repair[] = [
  {
    name: 'a wrong sign',
    files: {
      'sum.js': 'exports.sum = (a, b) => a - b\n',
      'check.js': checks("assert.equal(require('./sum').sum(1, 2), 3)"),
    },
    check,
    steps: [test, read('sum.js'), edit('sum.js', 'a - b', 'a + b'), test],
    says: ['AssertionError', 'exports.sum', 'replaced it in sum.js', '[exit code 0]'],
  },
  {
    name: 'an off-by-one, found by searching for its name',
    files: {
      'lib/range.js':
        'exports.range = n => {\n  const all = []\n  for (let i = 0; i <= n; i++) all.push(i)\n  return all\n}\n',
      'lib/other.js': 'exports.other = 1\n',
      'check.js': checks("assert.deepEqual(require('./lib/range').range(3), [0, 1, 2])"),
    },
    check,
    steps: [
      use('grep', { pattern: 'exports\\.range' }),
      read('lib/range.js'),
      edit('lib/range.js', 'i <= n', 'i < n'),
      test,
    ],
    says: ['lib/range.js:1: exports.range', 'i <= n', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a file that lies deep, found by its path',
    files: {
      'src/a/b/greeting.js': "exports.greet = name => 'Hello ' + nme\n",
      'check.js': checks("assert.equal(require('./src/a/b/greeting').greet('Ann'), 'Hello Ann')"),
    },
    check,
    steps: [
      use('glob', { pattern: '**/greet*.js' }),
      read('src/a/b/greeting.js'),
      edit('src/a/b/greeting.js', 'nme', 'name'),
      test,
    ],
    says: ['src/a/b/greeting.js', 'nme', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a module that is missing',
    files: { 'check.js': checks("assert.equal(require('./lib/upper').upper('a'), 'A')") },
    check,
    steps: [read('lib/upper.js'), write('lib/upper.js', 'exports.upper = text => text.toUpperCase()\n'), test],
    says: ['does not exist', 'wrote', '[exit code 0]'],
  },
  {
    name: 'a name that is wrong everywhere',
    files: {
      'names.js': 'const colour = 1\nexports.get = () => colour\nexports.colour = colour\n',
      'check.js': checks("assert.equal(require('./names').color, 1)"),
    },
    check,
    steps: [read('names.js'), edit('names.js', 'colour', 'color', { replace_all: true }), test],
    says: ['colour', 'replaced it 4 times in names.js', '[exit code 0]'],
  },
  {
    name: 'an edit before the file was read',
    files: { 'a.js': 'exports.a = 1\n', 'check.js': checks("assert.equal(require('./a').a, 2)") },
    check,
    steps: [edit('a.js', '1', '2'), read('a.js'), edit('a.js', '1', '2'), test],
    says: ['has not been read yet', 'exports.a = 1', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a passage that is there twice',
    files: {
      'twice.js': 'exports.one = () => {\n  return 0\n}\nexports.two = () => {\n  return 0\n}\n',
      'check.js': checks("assert.equal(require('./twice').two(), 2)"),
    },
    check,
    steps: [
      read('twice.js'),
      edit('twice.js', '  return 0', '  return 2'),
      edit('twice.js', 'two = () => {\n  return 0', 'two = () => {\n  return 2'),
      test,
    ],
    says: ['return 0', 'is in twice.js 2 times', 'replaced it in twice.js', '[exit code 0]'],
  },
  {
    name: 'a passage that the model remembers wrongly',
    files: {
      'tabs.js': 'exports.f = () => {\n\treturn 1\n}\n',
      'check.js': checks("assert.equal(require('./tabs').f(), 2)"),
    },
    check,
    steps: [
      read('tabs.js'),
      edit('tabs.js', '    return 1', '    return 2'),
      edit('tabs.js', '\treturn 1', '\treturn 2'),
      test,
    ],
    says: ['return 1', 'is not in tabs.js as it is written', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a file that a command changes after it was read',
    files: { 'v.js': 'exports.v = 1\n', 'check.js': checks("assert.equal(require('./v').v, 3)") },
    check,
    steps: [
      read('v.js'),
      run("printf 'exports.v = 2\\n' > v.js"),
      edit('v.js', '1', '3'),
      read('v.js'),
      edit('v.js', '2', '3'),
      test,
    ],
    says: [
      'exports.v = 1',
      '[exit code 0]',
      'has changed since it was read',
      'exports.v = 2',
      'replaced it',
      '[exit code 0]',
    ],
  },
  {
    name: 'a file with line ends of another system',
    files: {
      'dos.js': 'exports.f = () => {\r\n  return 1\r\n}\r\n',
      'check.js': checks(
        "assert.equal(require('./dos').f(), 2)\nassert.equal(require('fs').readFileSync('dos.js', 'utf8').split('\\r\\n').length, 4)",
      ),
    },
    check,
    steps: [read('dos.js'), edit('dos.js', 'exports.f = () => {\n  return 1', 'exports.f = () => {\n  return 2'), test],
    says: ['return 1', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'settings that are no JSON, written anew',
    files: {
      'settings.json': '{ "port": 80, }\n',
      'check.js': checks("assert.equal(require('./settings.json').port, 80)"),
    },
    check,
    steps: [write('settings.json', '{}'), read('settings.json'), write('settings.json', '{ "port": 80 }\n'), test],
    says: ['has not been read yet', '"port"', 'wrote 15 bytes', '[exit code 0]'],
  },
  {
    name: 'a person who does not want the check changed',
    files: { 'b.js': 'exports.b = 1\n', 'check.js': checks("assert.equal(require('./b').b, 2)") },
    check,
    steps: [read('check.js'), edit('check.js', '.b, 2', '.b, 1'), read('b.js'), edit('b.js', '1', '2'), test],
    rejects: ['Edit check.js'],
    says: ['assert.equal', 'the person refused it', 'exports.b', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a person who does not want a command run',
    files: { 'c.js': 'exports.c = 1\n', 'check.js': checks("assert.equal(require('./c').c, 2)") },
    check,
    steps: [run('rm -rf .'), read('c.js'), edit('c.js', '1', '2'), test],
    rejects: ['rm -rf .'],
    says: ['the person refused it', 'exports.c', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a tool that the model knows from elsewhere',
    files: { 'd.js': 'exports.d = 1\n', 'check.js': checks("assert.equal(require('./d').d, 2)") },
    check,
    steps: [use('apply_patch', { patch: '*** Update File: d.js' }), read('d.js'), edit('d.js', '1', '2'), test],
    says: ['unknown tool "apply_patch"', 'exports.d', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'arguments that are no JSON',
    files: { 'e.js': 'exports.e = 1\n', 'check.js': checks("assert.equal(require('./e').e, 2)") },
    check,
    steps: [{ calls: [{ name: 'read', raw: '{"path": "e.js"' }] }, read('e.js'), edit('e.js', '1', '2'), test],
    says: ['not a JSON object', 'exports.e', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a path that leads out of the workspace',
    files: { 'lib/f.js': 'exports.f = 1\n', 'check.js': checks("assert.equal(require('./lib/f').f, 2)") },
    check,
    steps: [read('../lib/f.js'), write('/tmp/f.js', 'x'), read('lib/f.js'), edit('lib/f.js', '1', '2'), test],
    says: ['is outside of the workspace', 'is outside of the workspace', 'exports.f', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a line far down in a long file',
    files: {
      'long.js': manyLines(3500, 'exports.f3500 = () => 0'),
      'check.js': checks("assert.equal(require('./long').f3500(), 3500)"),
    },
    check,
    steps: [
      read('long.js'),
      use('grep', { pattern: 'f3500', path: 'long.js' }),
      read('long.js', { offset: 3495, limit: 10 }),
      edit('long.js', 'f3500 = () => 0', 'f3500 = () => 3500'),
      test,
    ],
    says: ['go on with offset', 'long.js:3500:', 'lines 3495 to 3504 of 4000', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'a loop without an end',
    files: {
      'loop.js': 'exports.count = () => {\n  let n = 0\n  while (n < 5) n + 1\n  return n\n}\n',
      'check.js': checks(
        "if (process.env.RUN || !/n \\+ 1/.test(require('fs').readFileSync('loop.js', 'utf8'))) assert.equal(require('./loop').count(), 5)\nelse process.exit(1)",
      ),
    },
    check,
    steps: [run('RUN=1 node check.js', { timeout_seconds: 1 }), read('loop.js'), edit('loop.js', 'n + 1', 'n++'), test],
    says: ['killed after the timeout of 1 s', 'n + 1', 'replaced it', '[exit code 0]'],
  },
  {
    name: 'two files of one change, with a plan',
    files: {
      'price.js': 'exports.price = 10\n',
      'tax.js': "exports.total = () => require('./price').price * 1\n",
      'check.js': checks("assert.equal(require('./tax').total(), 24)"),
    },
    check,
    steps: [
      use('plan', {
        entries: [
          { content: 'price', status: 'in_progress' },
          { content: 'tax', status: 'pending' },
        ],
      }),
      {
        calls: [
          { name: 'read', input: { path: 'price.js' } },
          { name: 'read', input: { path: 'tax.js' } },
        ],
      },
      edit('price.js', '10', '20'),
      edit('tax.js', '* 1', '* 1.2'),
      use('plan', {
        entries: [
          { content: 'price', status: 'completed' },
          { content: 'tax', status: 'completed' },
        ],
      }),
      test,
    ],
    says: [
      'the plan has 2 steps',
      'price = 10',
      'total',
      'replaced it',
      'replaced it',
      'the plan has 2 steps',
      '[exit code 0]',
    ],
  },
  {
    name: 'a script that may not be run',
    files: {
      'tool.sh': '#!/bin/sh\necho ok\n',
      'check.js': checks("assert.equal(String(require('child_process').execFileSync('./tool.sh')), 'ok\\n')"),
    },
    check,
    steps: [run('./tool.sh'), run('chmod +x tool.sh && ./tool.sh'), test],
    says: ['[exit code 126]', 'ok\n[exit code 0]', '[exit code 0]'],
  },
  {
    name: 'an endpoint that fails on the way',
    files: { 'g.js': 'exports.g = 1\n', 'check.js': checks("assert.equal(require('./g').g, 2)") },
    check,
    steps: [
      read('g.js'),
      { status: 500 },
      { drop: 'before' },
      edit('g.js', '1', '2'),
      { status: 429, headers: { 'retry-after': '0' } },
      test,
    ],
    says: ['exports.g', 'replaced it', '[exit code 0]'],
  },
]
