import { chmodSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { importClaude } from '../../../cli/import/claude.js'
import { sourceOf } from '../../../cli/import/foreign-file.js'
import type { WantedHook } from '../../../cli/import/plan.js'
import { hooks, settings, skills, trust, vault } from '../../../plugins/index.js'
import { openWorld, type World } from '../../fixtures/session-world.js'
import type { Reply } from '../../harness/kernel.js'
import { typescript } from '../../harness/run-typescript.js'
import { runCli } from '../fake-daemon.js'
import { data, dist } from '../tree.js'
import { around } from './around.js'

const plan = (files: Record<string, string>, more = {}) =>
  importClaude(
    Object.entries(files).map(([path, text]) => sourceOf(path, Buffer.from(text))),
    around(more),
  )
const hooksOf = (found: ReturnType<typeof plan>) => found.wanted.filter((one): one is WantedHook => one.kind === 'hook')
const left = (found: ReturnType<typeof plan>) => found.left.map(({ what, line, why }) => `${line} ${what}: ${why}`)

const SETTINGS = JSON.stringify(
  {
    $schema: 'https://json.schemastore.org/claude-code-settings.json',
    model: 'opus',
    permissions: { allow: ['Bash(npm run lint)'], deny: ['Read(./.env)'], defaultMode: 'acceptEdits' },
    hooks: {
      PreToolUse: [
        { matcher: 'Bash', hooks: [{ type: 'command', command: 'jq -r .tool_input.command >> ~/log.txt' }] },
        {
          matcher: 'Edit|Write',
          hooks: [{ type: 'command', command: '"$CLAUDE_PROJECT_DIR"/.claude/check.sh', timeout: 10 }],
        },
      ],
      Stop: [{ hooks: [{ type: 'command', command: 'say done' }] }],
      Notification: [{ hooks: [{ type: 'command', command: 'notify' }] }],
      Invented: [{ hooks: [] }, { hooks: [{ type: 'command', command: 'x' }] }],
      PostToolUse: [
        { matcher: '(a+)+$', hooks: [{ type: 'command', command: 'x' }] },
        { matcher: '*', hooks: [{ type: 'prompt', prompt: 'is this fine?' }, { type: 'command', command: '' }, null] },
        'odd',
      ],
      SessionStart: 'odd',
    },
  },
  null,
  1,
)

test('hooks of settings.json are imported with events, matchers and timeouts; unsupported ones are listed', () => {
  const mine = plan({ '/home/me/.claude/settings.json': SETTINGS })
  assert.equal(
    hooksOf(mine).map(({ declaration: { event, mode, timeout, metadata, args } }) => [
      event,
      mode,
      timeout,
      metadata,
      args,
    ]),
    [
      [
        'permission.request',
        'sync',
        '60s',
        { claude_matcher: 'Bash' },
        ['-c', 'jq -r .tool_input.command >> ~/log.txt'],
      ],
      ['tool.pre_call', 'sync', '60s', { claude_matcher: 'Bash' }, ['-c', 'jq -r .tool_input.command >> ~/log.txt']],
      [
        'permission.request',
        'sync',
        '10s',
        { claude_matcher: 'Edit|Write' },
        ['-c', '"$CLAUDE_PROJECT_DIR"/.claude/check.sh'],
      ],
      [
        'tool.pre_call',
        'sync',
        '10s',
        { claude_matcher: 'Edit|Write' },
        ['-c', '"$CLAUDE_PROJECT_DIR"/.claude/check.sh'],
      ],
      ['turn.end', 'async', '60s', undefined, ['-c', 'say done']],
    ],
  )
  assert.equal(new Set(hooksOf(mine).map(({ name }) => name)).size, 5)
  assert.equal(
    mine.inPlace.map(({ what }) => what),
    ['model', 'permissions'],
  )
  assert.equal(
    left(mine).map(text => text.replace(/^\d+ /, '')),
    [
      'Notification: svc has notifications of its own: svc notifications',
      'Invented: svc has no such event',
      'PostToolUse: matcher the text "(a+)+$": names joined by | are possible, with .* for anything',
      'PostToolUse: its type is the text "prompt"; svc runs programs',
      'PostToolUse: it has no command',
      'PostToolUse: an object is expected, not null',
      'PostToolUse: a list hooks is expected in it',
      'SessionStart: a list is expected, not the text "odd"',
    ],
  )
  for (const { line } of mine.left) assert.ok(line > 10)
  const projects = plan({ '/work/app/.claude/settings.json': SETTINGS })
  assert.equal(hooksOf(projects)[4]?.declaration.metadata, { claude_project: '/work/app' })
  assert.is.not(hooksOf(projects)[4]?.name, hooksOf(mine)[4]?.name)
  assert.equal(hooksOf(plan({ '/h/.claude/settings.json': '{"disableAllHooks": true, "hooks": {"Stop": []}}' })), [])
})

test('the text of agents and commands is imported, and names of Claude are listed', () => {
  const found = plan({
    '/home/me/.claude/agents/Code Reviewer.md':
      '\uFEFF---\r\nname: code-reviewer\r\ndescription: Reviews code\r\ntools: Read, Grep\r\nmodel: sonnet\r\n---\r\nYou review code.\r\n',
    '/home/me/.claude/agents/plain.md': 'No head at all.',
    '/home/me/.claude/agents/empty.md': '---\nname: x\n---\n',
    '/home/me/.claude/agents/open.md': '---\nname: x\n',
    '/home/me/.claude/commands/git/fix issue.md':
      '---\ndescription: Fix "it"\nallowed-tools: Bash\n---\n\nFix $ARGUMENTS\nand !`ls`\n',
    '/home/me/.claude/settings.json': '{"hooks": ',
  })
  const agents = found.wanted.flatMap(one => (one.kind === 'agent' ? [[one.name, one.agent.prompt]] : []))
  assert.equal(agents, [
    ['code-reviewer', 'You review code.'],
    ['plain', 'No head at all.'],
  ])
  const [command] = found.wanted.filter(({ kind }) => kind === 'skill')
  assert.is(command?.name, 'git-fix-issue')
  assert.ok(command?.kind === 'skill' && 'text' in command.from)
  assert.match(command.from.text, /^---\nname: git-fix-issue\ndescription: "Fix \\"it\\""\n---\nFix \$ARGUMENTS/)
  assert.equal(left(found), [
    '4 code-reviewer.tools: these are tools of Claude; in svc, tools of an agent lists tools of the daemon (svc tool list)',
    '5 code-reviewer.model: it is a name of Claude; choose one: svc agent update <name> --provider claude --model <model>',
    '1 empty.md: it has no text, which is the prompt of an agent',
    '1 open.md: its frontmatter is not closed by a line ---',
    '6 git-fix-issue $ARGUMENTS: svc does not insert arguments into a skill; the agent reads them from the prompt',
    '7 git-fix-issue !`command`: svc runs no commands for a skill; the text tells the agent to run them',
    '3 git-fix-issue.allowed-tools: svc has no equivalent of this member',
    '1 settings.json: not valid JSON: this { is not closed by a }',
  ])
})

test('servers of .claude.json are imported for the user and for the project', () => {
  const state = JSON.stringify({
    numStartups: 3,
    mcpServers: { mine: { command: 'x' } },
    projects: { '/work/app': { mcpServers: { theirs: { command: 'y' } } }, '/other': { mcpServers: {} } },
  })
  const all = plan({ '/home/me/.claude.json': state })
  assert.equal(
    all.wanted.map(({ name }) => name),
    ['mine'],
  )
  assert.match(left(all)[0] ?? '', 'import it with --workspace /work/app')
  const one = plan({ '/home/me/.claude.json': state }, { workspaceId: 'ws_1', rootDir: '/work/app' })
  assert.equal(
    one.wanted.map(({ name }) => name),
    ['mine', 'theirs'],
  )
})

/** The example of the documentation of Claude Code, as people have it. */
const VALIDATOR = `#!/usr/bin/env python3
import json, re, sys
try:
    data = json.load(sys.stdin)
except json.JSONDecodeError as e:
    print(f"Error: Invalid JSON input: {e}", file=sys.stderr)
    sys.exit(1)
if data.get("tool_name", "") != "Bash":
    sys.exit(0)
command = data.get("tool_input", {}).get("command", "")
if re.search(r"^git\\b", command):
    print("Use the changelog instead of git", file=sys.stderr)
    sys.exit(2)
`

let world: World
test.before(async () => {
  world = await openWorld({ listen: ['socket'], plugins: [hooks, settings, skills, trust, vault] })
})
test.after(() => world.close())

const svc = (...argv: string[]) =>
  runCli(world.home, argv, { data, root: dist, cwd: world.root, env: { HOME: world.root, PATH: '/usr/bin:/bin' } })

const put = (name: string, text: string, mode = 0o644) => {
  const file = join(world.root, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, mode)
}

test('a hook program of Claude Code runs unchanged: exit status 2 blocks the report agent with its message', async () => {
  const validator = join(world.root, '.claude', 'validator.py')
  put('.claude/validator.py', VALIDATOR, 0o755)
  put(
    '.claude/settings.json',
    JSON.stringify({
      hooks: {
        PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: `python3 '${validator}'`, timeout: 30 }] }],
      },
    }),
  )
  put('.claude/agents/reviewer.md', '---\nname: reviewer\n---\nYou review.')
  put('.claude/commands/ship.md', 'Ship it.')
  put('.claude/skills/pdf/SKILL.md', '---\nname: pdf\ndescription: PDF\n---\nRead it.')
  put('.claude/skills/pdf/scripts/run.sh', '#!/bin/sh\n', 0o755)
  symlinkSync('..', join(world.root, '.claude', 'skills', 'loop'))
  const first = await svc('import', 'claude', '--json')
  assert.is(first.code, 0, first.stderr || first.stdout)
  assert.equal(JSON.parse(first.stdout).counts, { create: 5, update: 0, unchanged: 0, failed: 0, left: 0, in_place: 0 })
  const second = JSON.parse((await svc('import', 'claude', '--json')).stdout)
  assert.equal(second.counts, { create: 0, update: 0, unchanged: 5, failed: 0, left: 0, in_place: 0 })
  assert.is(readFileSync(join(world.home, 'skills', 'pdf', 'scripts', 'run.sh'), 'utf8'), '#!/bin/sh\n')
  const listed = await world.kernel.request('GET', '/api/skills')
  const names = listed.body.skills.map(({ name }: Reply) => name)
  assert.ok(names.includes('pdf') && names.includes('ship'), names.join())

  const agent = fileURLToPath(new URL('../../../examples/agents/report/agent.ts', import.meta.url))
  await world.agent('report', { command: [process.execPath, ...typescript, agent].join(' ') })
  unlinkSync(join(world.root, '.claude', 'skills', 'loop'))
  assert.is((await svc('workspace', 'trust', world.root)).code, 0)
  // The agent asks for git only in a repository.
  mkdirSync(join(world.root, '.git'))
  const { id, at } = await world.session('report')
  const events = await world.prompt(at, 'look at this folder')
  const notes = events.filter(({ type }) => type === 'permission').map(({ content }) => content.note)
  assert.match(notes.join('\n'), /Use the changelog instead of git \(hook claude-pre-tool-use-[0-9a-f]{6}\)/)
  assert.match(readFileSync(join(world.root, 'svc-reports', 'report.md'), 'utf8'), /not permitted|git/i)
  const { body } = await world.kernel.request('GET', `/api/workspaces/${world.workspaceId}/hooks/runs?session=${id}`)
  assert.ok(body.runs.some(({ outcome, event }: Reply) => outcome === 'denied' && event === 'permission.request'))
})

test('a symbolic link in the skills folder copies nothing from outside the workspace', async () => {
  mkdirSync(join(world.root, '.svc', 'skills'), { recursive: true })
  symlinkSync(world.home, join(world.root, '.svc', 'skills', 'ship'))
  const { code, stdout } = await svc('import', '.claude', '--workspace', world.root)
  assert.is(code, 1, stdout)
  assert.match(stdout, /is a link that leads out of /)
})

test.run()
