import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { processesWith } from '../../e2e/installed.js'
import type { CodingWorld } from './world.js'

/** Stands in the prompt of the turn that is taken out of the conversation, and nowhere else. */
const MARK = 'to-be-removed-k7f2'
const KEPT = 'to-be-kept-m3x9'
const WORDS = `[[drip:200]][[say:${'word '.repeat(300)}]]`

/** One step of the job; `done` says what was seen. */
export interface Step {
  readonly what: string
  run(): Promise<string>
}

/** How an agent lets its model change `coding/sum.mjs`; the first one looks at the file, where it has to. */
export interface Editing {
  readonly look?: (file: string) => string
  edit(file: string): string
}

/** The work of a person with an agent, from the first prompt to a recovery, in a sandbox or in none. */
export function codingJob(world: CodingWorld, editing: Editing, sandbox: 'none' | 'default'): readonly Step[] {
  const { real, repository } = world
  const file = path.join(repository, 'coding/sum.mjs')
  let id = ''
  let edited = ''
  let branch = ''
  // In a sandbox the agents have none of their own that a command would have to leave.
  const tool = (command: string) => real.tool(command, sandbox === 'none')
  return [
    {
      what: 'a session starts, and says how it is confined',
      async run() {
        id = await world.session('coder', sandbox)
        const { end } = await world.prompt(id, `${KEPT} [[say:ready]]`)
        assert.equal(end.type, 'done', JSON.stringify(end))
        const backend = (await world.row(id)).sandbox?.backend
        assert.equal(backend, sandbox === 'none' ? undefined : 'bubblewrap')
        return `${id}, ${backend ?? 'no sandbox'}`
      },
    },
    {
      what: 'it edits a file',
      async run() {
        if (editing.look) await world.prompt(id, `${editing.look(file)}[[say:seen]]`)
        edited = await world.send(id, `${MARK} ${editing.edit(file)}[[say:edited ${MARK}]]`)
        const { end, asked: requests, text } = await world.ended(id, edited)
        assert.equal(end.type, 'done', JSON.stringify(end))
        assert.match(fs.readFileSync(file, 'utf8'), /a \+ b/, text)
        return `coding/sum.mjs is right, after ${requests} answered questions`
      },
    },
    {
      what: 'it runs the test of that file after a question is answered',
      async run() {
        const { end, asked, text } = await world.prompt(id, `${tool('node coding/sum.test.mjs')}[[say:tested]]`)
        assert.equal(end.type, 'done', JSON.stringify(end))
        assert.ok(asked > 0, 'it asked')
        assert.match(text, /the sum is right/)
        return `${asked} question, and the test passes`
      },
    },
    {
      what: 'it is steered in the middle of a turn',
      async run() {
        const running = await world.send(id, `${tool('sleep 2; echo slept')}${WORDS}`)
        const over = world.ended(id, running)
        await world.until('the tool call', async () =>
          (await world.events(id, `&turn_id=${running}`)).some(({ type }) => type === 'tool_call'),
        )
        const steered = await world.svc('session', 'steer', id, '[[forget]][[say:another way]]')
        assert.equal((await over).end.type, 'done')
        const { text } = await world.ended(id, steered.prompt.new_turn_id)
        assert.match(text, /another way/)
        // Each word is a message of its own, or a part of one.
        assert.ok((await over).text.split('word ').length < 200, 'it did not go on to its end')
        return 'the turn ended at its tool result, the other one was taken up'
      },
    },
    {
      what: 'it is rewound to before the edit',
      async run() {
        const { entries } = (await world.svc('session', 'transcript', id)) as { entries: { message: Message }[] }
        const prompt = entries.map(({ message }) => message).find(one => JSON.stringify(one.parts).includes(MARK))
        assert.ok(prompt, 'the prompt is in the transcript')
        const { rewind } = await world.svc('session', 'rewind', id, '--message', prompt.id)
        assert.deepEqual(rewind.changed_files, [file])
        assert.match(fs.readFileSync(file, 'utf8'), /a \+ b/, 'files stay as they are')
        const before = (await world.requests()).length
        const { text } = await world.prompt(id, '[[say:begun again]]')
        assert.match(text, /begun again/)
        const after = (await world.requests()).slice(before === 20 ? -1 : before)
        assert.ok(
          after.some(request => request.includes(KEPT)),
          'what was before is told',
        )
        for (const request of after) assert.doesNotMatch(request, new RegExp(MARK))
        return `the answer names coding/sum.mjs; ${after.length} requests later tell nothing of it`
      },
    },
    {
      what: 'it is forked into a worktree, where git works and nothing is planted',
      async run() {
        const { session } = await world.svc('session', 'fork', id, '--name', 'another')
        branch = session.id
        const tries = [
          'echo forked > forked.txt',
          'git add forked.txt',
          'git -c user.name=a -c user.email=a@example.org commit -qm forked',
          'echo committed $(git log --format=%s -1)',
          'd=$(git rev-parse --git-common-dir)',
          '(echo : > $d/hooks/post-checkout) 2>/dev/null || echo no""-hook',
          'git config core.hooksPath /tmp 2>/dev/null || echo no""-config',
        ]
        const { text } = await world.prompt(branch, `${tool(tries.join('; '))}[[say:there]]`)
        assert.match(text, /committed forked/)
        assert.equal(world.git(repository, 'log', '--format=%s', '-1', 'svc/another').trim(), 'forked')
        assert.ok(!fs.existsSync(path.join(repository, 'forked.txt')), 'the first worktree is as it was')
        if (sandbox === 'none') return `${session.workspace_path}: a commit on its branch`
        assert.match(text, /no-hook/)
        assert.match(text, /no-config/)
        return `${session.workspace_path}: a commit on its branch; hooks and configuration are refused`
      },
    },
    {
      what: 'a child has fewer rights, and is refused what it lacks',
      async run() {
        const spawn = (more: string) => `"$SVC_BIN" spawn helper --paths ${repository}/coding ${more} 2>&1`
        const wider = await world.prompt(id, `${tool(spawn('--tools service__session_stop'))}[[say:tried]]`)
        assert.match(wider.text, /spawn_rights_exceeded|not a right of session/)
        await world.prompt(id, `${tool(spawn('--tools svc__execute'))}[[say:spawned]]`)
        const child = (await world.sessions()).find(({ agent_name }) => agent_name === 'helper')
        assert.ok(child, 'there is a child')
        const outside = path.join(repository, 'outside')
        const tries = [`touch inside`, `touch ${outside}`, spawn('')].join('; ')
        // Children are in a sandbox, whatever their parent is in.
        const { text } = await world.prompt(child.id, `${real.tool(tries, false)}[[say:tried]]`)
        assert.ok(fs.existsSync(path.join(repository, 'coding/inside')), text)
        assert.ok(!fs.existsSync(outside), 'it writes in its folder only')
        assert.match(text, /spawn_depth_exceeded|cannot spawn sessions/)
        return `${child.id}: writes in coding only, spawns nothing`
      },
    },
    {
      what: 'it stands still, and the daemon recovers the session',
      async run() {
        const running = await world.send(id, WORDS)
        await world.until('the first words', async () =>
          (await world.events(id, `&turn_id=${running}`)).some(
            ({ type, content }) => type === 'agent_message' && /word/.test(String(Object(content).text)),
          ),
        )
        const frozen = processesWith(`SVC_SESSION_ID=${id}`)
        for (const pid of frozen) process.kill(pid, 'SIGSTOP')
        const { end } = await world.ended(id, running)
        assert.equal(end.failure?.kind, 'timeout', JSON.stringify(end))
        const { text } = await world.prompt(id, '[[say:here again]]')
        assert.match(text, /here again/)
        return `${frozen.length} processes ended; the next prompt is answered`
      },
    },
    {
      what: 'nothing of it is left',
      async run() {
        for (const { id: each } of await world.sessions()) {
          await world.daemon.cli('session', 'stop', each)
          assert.deepEqual(processesWith(`SVC_SESSION_ID=${each}`), [], each)
        }
        return 'no process'
      },
    },
  ]
}

interface Message {
  readonly id: string
  readonly parts: unknown
}
