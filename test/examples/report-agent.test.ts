import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { readDirectives } from '../../examples/agents/report/directives.js'
import { ignores, parseIgnore } from '../../examples/agents/report/gitignore.js'
import { agentSuite, commit, REPORT, refuseWrite, SMALL } from './report-agent-client.js'

const test = agentSuite('report agent')

const TREE = {
  '.gitignore': '# built\n*.log\n!keep.log\n/out/\ngenerated/*.ts\n',
  'README.md': '# Demo\n\nSome *text*.\n',
  'assets/logo.bin': '0123456789'.repeat(30),
  'debug.log': 'TODO not seen\n',
  'dist/bundle.js': '// TODO not seen\n',
  'generated/api.ts': '// TODO not seen\n',
  'keep.log': 'kept\n',
  'node_modules/x/index.js': '// TODO not seen\n',
  'out/a.ts': '// TODO not seen\n',
  'src/a.ts': 'export const a = 1\n/* FIXME: <b>wrong</b> for `n` */\nexport const c = "TODOS are no notes"\n',
  'src/deep/b.py': '# TODO(ada): later\nprint("no newline at the end")',
}

const GOLDEN = `# Workspace report

- Files: 6 in 4 directories, 511 bytes
- Read: 3 files, 8 lines; the others are counted by size only
- TODO and FIXME notes: 2

## Languages

| Language | Files | Lines |
| --- | ---: | ---: |
| Markdown | 1 | 3 |
| TypeScript | 1 | 3 |
| Python | 1 | 2 |

Files of no known language: 3.

## TODO and FIXME

- \`src/a.ts:2\` FIXME: \\<b\\>wrong\\</b\\> for \\\`n\\\`
- \`src/deep/b.py:1\` TODO(ada): later

## Largest files

- \`assets/logo.bin\` 300 bytes
- \`src/a.ts\` 91 bytes
- \`src/deep/b.py\` 49 bytes
- \`.gitignore\` 45 bytes
- \`README.md\` 21 bytes
- \`keep.log\` 5 bytes

## Last commits

- \`cc233dbe12\` 2024-01-02 Ada: Start \\<here\\> (8 files)
`

test('the agent writes the report through the client and reports each step', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', TREE)
  commit(cwd, 'Start <here>', '2024-01-02')
  mkdirSync(join(cwd, '.svc'))
  writeFileSync(join(cwd, '.svc', 'workspace.toml'), '# TODO not seen\n')
  const agent = await start()
  const session = await agent.open(cwd)

  assert.is(await agent.prompt(session), 'end_turn')
  assert.is(readFileSync(join(cwd, REPORT), 'utf8'), GOLDEN)
  const [command] = agent.asked
  assert.is(agent.asked.length, 1)
  assert.equal(
    command!.options.map(option => option.kind),
    ['allow_once', 'allow_always', 'reject_once', 'reject_always'],
  )
  assert.equal((command!.toolCall.rawInput as { command: string }).command, 'git')
  const terminal = agent.log.filter(entry => /^permission|^terminal/.test(entry))
  const expected = ['create', 'wait_for_exit', 'output', 'release'].map(method => `terminal/${method}`)
  assert.equal(terminal, ['permission execute', ...expected])
  const calls = agent.toolCalls(session)
  assert.ok(
    calls.every(call => call.endsWith(': pending in_progress completed')),
    calls.join('\n'),
  )
  assert.equal(
    calls.map(call => call.replace(/:.*/, '').replace(/^git .*/, 'git')),
    [
      'List files',
      'Read the top directory (1 file)',
      'Read src (1 file)',
      'Read src/deep (1 file)',
      'git',
      'Write svc-reports/report.md',
    ],
  )
  assert.ok(agent.log.indexOf('update plan') < agent.log.indexOf('update tool_call'))
  assert.match(agent.said(session), 'Found 6 files in 4 directories.\n')
  assert.match(
    agent.said(session),
    `6 files, top language Markdown, 2 TODO or FIXME notes.\nReport: ${join(cwd, REPORT)}\n`,
  )

  assert.is(await agent.prompt(session), 'end_turn')
  assert.is(
    readFileSync(join(cwd, REPORT), 'utf8'),
    GOLDEN,
    'the same tree gives the same bytes, whatever was reported before',
  )
})

test('the agent continues without the history when the command is rejected', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start({ answer: () => (agent.asked.length === 1 ? 'reject-once' : 'reject-always') })
  const session = await agent.open(cwd)
  for (const asked of [1, 2, 2]) {
    assert.is(await agent.prompt(session), 'end_turn')
    assert.is(agent.asked.length, asked, 'rejected once is asked again, rejected always is not')
    assert.match(readFileSync(join(cwd, REPORT), 'utf8'), 'reading the git history was not permitted')
  }
  assert.is(agent.terminals.size, 0)
  assert.ok(agent.toolCalls(session).some(call => /^git .*: pending failed$/.test(call)))
})

test('the agent remembers an allowance for one session only', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  commit(cwd, 'One', '2024-01-02')
  const agent = await start({ answer: () => 'allow-always' })
  const first = await agent.open(cwd)
  await agent.prompt(first)
  await agent.prompt(first)
  assert.is(agent.asked.length, 1)
  assert.is(agent.terminals.size, 2)
  await agent.prompt(await agent.open(cwd))
  assert.is(agent.asked.length, 2)
})

test('outside a repository the agent does not ask for git', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  rmSync(join(cwd, '.git'), { recursive: true })
  const agent = await start()
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'end_turn')
  assert.equal(agent.asked, [])
  assert.match(readFileSync(join(cwd, REPORT), 'utf8'), 'this folder is in no git repository')
  assert.match(agent.said(session), 'The folder is in no git repository')
})

test('the agent reports that there is no history in a broken repository', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start({ replaceCommand: ['git', '--git-dir=/dev/null', 'log'] })
  assert.is(await agent.prompt(await agent.open(cwd)), 'end_turn')
  assert.match(readFileSync(join(cwd, REPORT), 'utf8'), 'git ended with exit code 128')
  assert.is(agent.log.filter(entry => entry === 'terminal/release').length, 1)
})

test('the agent asks for the write when the client refuses it, and writes once allowed', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start({
    beforeWrite: () => void (agent.asked.some(ask => ask.toolCall.kind === 'edit') || refuseWrite()),
  })
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session, 'Please report to docs/REPORT.md.'), 'end_turn')
  const target = join(cwd, 'docs/REPORT.md')
  const seen = agent.log.filter(entry => /^permission|^fs\/write/.test(entry))
  assert.equal(seen, ['permission execute', 'fs/write_text_file', 'permission edit', 'fs/write_text_file'])
  assert.equal(agent.asked[1]!.toolCall.locations, [{ path: target }])
  assert.match(readFileSync(target, 'utf8'), '# Workspace report')
  assert.match(agent.said(session), `\nReport: ${target}\n`)
  assert.not(existsSync(join(cwd, REPORT)))
})

test('the agent returns the report as text when the write stays refused or fails', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  let refuse: () => never = refuseWrite
  const agent = await start({
    answer: ({ toolCall }) => (toolCall.kind === 'edit' ? 'reject-once' : 'allow-once'),
    beforeWrite: () => refuse(),
  })
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'end_turn')
  assert.match(
    agent.said(session),
    `was not written: it was not permitted. It would have gone to ${join(cwd, REPORT)}.`,
  )
  assert.match(agent.said(session), '# Workspace report\n\n- Files: 1 in 1 directory')
  assert.not.match(agent.said(session), '\nReport: ')

  refuse = () => {
    throw new RequestError(-32603, 'No space left on device')
  }
  assert.is(await agent.prompt(session), 'end_turn')
  assert.match(agent.said(session), 'was not written: No space left on device.')
  assert.is(agent.asked.filter(ask => ask.toolCall.kind === 'edit').length, 1, 'no permission helps a full disk')
  assert.not(existsSync(join(cwd, '.svc')))
})

test('a write that a person refused to the client is not asked again', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start({
    beforeWrite: () => {
      throw new RequestError(-32_001, 'permission denied: a person rejected it', { code: 'permission_denied' })
    },
  })
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'end_turn')
  assert.match(agent.said(session), 'was not written: permission denied: a person rejected it.')
  assert.equal(agent.asked.filter(ask => ask.toolCall.kind === 'edit').length, 0)
})

test('the turn ends when a permission is answered with cancelled', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const agent = await start({ answer: () => 'cancelled' })
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'cancelled')
  assert.not(existsSync(join(cwd, '.svc')))
  assert.match(agent.toolCalls(session).at(-1)!, /^git .*: pending failed$/)
})

test('the agent works alone for a client without files and terminals', async ({ scratch, start }) => {
  const cwd = scratch.workspace('project', SMALL)
  const answers: ('reject-once' | 'allow-once')[] = ['reject-once', 'allow-once']
  const agent = await start({ capabilities: {}, answer: () => answers.shift()! })
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'end_turn')
  assert.not(existsSync(join(cwd, '.svc')))
  assert.match(agent.said(session), 'was not written: it was not permitted')
  assert.is(await agent.prompt(session), 'end_turn')
  assert.equal(
    agent.log.filter(entry => !entry.startsWith('update')),
    ['permission edit', 'permission edit'],
  )
  const report = readFileSync(join(cwd, REPORT), 'utf8')
  assert.match(report, '- `a.ts:1` TODO one')
  assert.match(report, 'the client offers no terminal to run git in')
})

test('a report outside the workspace is refused and changes nothing', async ({ scratch, start }) => {
  const outside = scratch.workspace('outside', {})
  const cwd = scratch.workspace('project', SMALL)
  symlinkSync(outside, join(cwd, 'link'))
  symlinkSync(join(outside, 'missing.md'), join(cwd, 'dangling.md'))
  mkdirSync(join(cwd, 'docs'))
  const agent = await start()
  const session = await agent.open(cwd)
  const refusals = {
    '../x.md': 'outside',
    'docs/../../x.md': 'outside',
    'link/x.md': 'outside',
    'dangling.md': 'outside',
  }
  const others = {
    '.git/hooks/x': 'outside',
    '/tmp/x.md': 'not_relative',
    '~/x.md': 'not_relative',
    'docs/': 'not_a_file',
    './docs': 'not_a_file',
  }
  for (const [path, code] of Object.entries({ ...refusals, ...others })) {
    const before = agent.said(session).length
    assert.is(await agent.prompt(session, `Please report to ${path}`), 'refusal', path)
    assert.match(agent.said(session).slice(before), `(report_path_${code}`, path)
  }
  assert.equal(
    agent.log.filter(entry => !/^update (agent_message_chunk)$/.test(entry)),
    [],
  )
  assert.not(existsSync(join(outside, 'missing.md')))
})

test('the agent reads a part of a large workspace and says so', async ({ scratch, start }) => {
  const many = Object.fromEntries(Array.from({ length: 420 }, (_, index) => [`src/${1000 + index}.ts`, '// FIXME\n']))
  const cwd = scratch.workspace('project', { ...many, 'large.ts': 'x\n'.repeat(128 * 1024 + 1), 'binary.ts': 'a\0b' })
  const agent = await start()
  const session = await agent.open(cwd)
  assert.is(await agent.prompt(session), 'end_turn')
  // 400 are read, of which one turns out not to be text; the large one is not asked for.
  assert.is(agent.log.filter(entry => entry === 'fs/read_text_file').length, 400)
  const report = readFileSync(join(cwd, REPORT), 'utf8')
  assert.match(report, '- Read: 399 files, 399 lines; the others are counted by size only')
  assert.match(report, '| TypeScript | 422 | 399 (23 not read) |')
  assert.match(report, 'And 199 more.')
  assert.is(agent.toolCalls(session).filter(call => call.startsWith('Read ')).length, 2, 'one a directory')
})

test('the agent follows simple patterns of .gitignore at a bounded cost', () => {
  const rules = [
    ...parseIgnore('*.tmp\n!keep.tmp\n/top\nlogs/\na/**/z\n[x]\n#c\n', ''),
    ...parseIgnore('/b?.ts', 'sub'),
  ]
  const ignored = ['x.tmp', 'deep/x.tmp', 'top', 'a/z', 'a/b/c/z', 'sub/b1.ts']
  const kept = ['keep.tmp', 'deep/top', 'logs', 'a/zz', 'x', 'b1.ts', 'sub/b12.ts', 'sub/x/b1.ts']
  for (const path of ignored) assert.ok(ignores(rules, path, false), path)
  for (const path of kept) assert.not(ignores(rules, path, false), path)
  assert.ok(ignores(rules, 'deep/logs', true))
  // As a regular expression this pattern would not come to an end.
  assert.not(ignores(parseIgnore(`${'*a'.repeat(100)}b`, ''), 'a'.repeat(250), false))
})

test('directives are read from a prompt and not from the definition of the agent', () => {
  const directives = (text: string) => readDirectives([{ type: 'text', text }])
  assert.equal(directives('report to the team, and pause for a moment'), { target: REPORT, pauseMs: 0 })
  assert.equal(directives('Report to `docs/my report.md`. pause 50ms between steps'), {
    target: 'docs/my report.md',
    pauseMs: 50,
  })
  assert.equal(directives('report to a.md\nreport to (b) or report to docs/c.md, pause 90s between steps'), {
    target: 'docs/c.md',
    pauseMs: 5_000,
  })
  const definition = readFileSync(new URL('../../examples/agents/report/AGENT.md', import.meta.url), 'utf8')
  const [, head, body] = /^---\n(.*?)\n---\n(.*)$/s.exec(definition)!
  assert.equal(parse(head!), { name: 'report', permissions: 'approve-reads', command: 'svc-report-agent' })
  assert.ok(body!.trim() !== '')
  assert.equal(directives(definition), { target: REPORT, pauseMs: 0 })
})

test.run()
