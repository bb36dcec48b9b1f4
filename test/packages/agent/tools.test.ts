import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type AgentWorld, openAgent } from '../../fixtures/agent-world.js'

let world: AgentWorld
let answer: 'allow_once' | 'allow_always' | 'reject_once' | 'cancelled'

test.before(async () => {
  world = await openAgent(
    {
      'src/sum.js': 'export const sum = (a, b) => a - b\n',
      'src/twice.js': 'x\nx\n',
      'src/dos.txt': 'one\r\ntwo\r\n',
      'notes.md': 'a needle here\n',
      'node_modules/pkg/index.js': 'needle\n',
    },
    { answer: () => answer },
  )
  writeFileSync(path.join(path.dirname(world.root), 'outside.txt'), 'secret outside\n')
  symlinkSync(path.join(path.dirname(world.root), 'outside.txt'), path.join(world.root, 'link.txt'))
  writeFileSync(path.join(world.root, 'picture.bin'), Buffer.from([1, 0, 2, 255]))
  mkdirSync(path.join(world.root, '.git'))
})
test.before.each(() => {
  world.clear()
  answer = 'allow_once'
})
test.after(() => world.close())

/** Has the model make calls one after another; returns the results that it was given. */
async function calls(...wanted: readonly (readonly [string, unknown])[]): Promise<readonly string[]> {
  world.model.script([...wanted.map(([name, input]) => ({ calls: [{ name, input }] })), { text: 'done' }])
  await world.prompt('go')
  return world.model.results().slice(-wanted.length)
}
const call = async (name: string, input: unknown) => (await calls([name, input]))[0] ?? ''

test('a read file is edited after a question with the diff', async () => {
  const edit = { path: 'src/sum.js', old_text: 'a - b', new_text: 'a + b' }
  const [, result] = await calls(['read', { path: 'src/sum.js' }], ['edit', edit])
  assert.is(result, 'replaced it in src/sum.js')
  assert.is(world.file('src/sum.js'), 'export const sum = (a, b) => a + b\n')
  const [question] = world.questions
  assert.is(question.toolCall.kind, 'edit')
  const place = path.join(world.root, 'src/sum.js')
  assert.equal(question.toolCall.locations, [{ path: place }])
  const diff = {
    type: 'diff',
    path: place,
    oldText: 'export const sum = (a, b) => a - b\n',
    newText: 'export const sum = (a, b) => a + b\n',
  }
  assert.equal(question.toolCall.content, [diff])
  assert.equal(world.call().content, [diff])
  assert.is(world.call().status, 'completed')
})

test('a rejected edit changes nothing, and the model is informed', async () => {
  answer = 'reject_once'
  await call('read', { path: 'notes.md' })
  const [rejected] = await calls(['edit', { path: 'notes.md', old_text: 'needle', new_text: 'pin' }])
  assert.match(rejected ?? '', /^not done: the person refused it/)
  assert.is(world.file('notes.md'), 'a needle here\n')
  assert.is(world.call().status, 'failed')
})

test('a file that is unread, changed since or outside the workspace is not edited', async () => {
  writeFileSync(path.join(world.root, 'unread.txt'), 'text\n')
  const unread = { path: 'unread.txt', old_text: 'text', new_text: 'x' }
  assert.match(await call('edit', unread), 'has not been read yet; read it first')
  await call('read', { path: 'unread.txt' })
  writeFileSync(path.join(world.root, 'unread.txt'), 'text by somebody else\n')
  assert.match(await call('edit', unread), 'has changed since it was read')
  assert.match(await call('write', { path: 'unread.txt', content: 'x' }), 'has changed since it was read')
  for (const place of ['../outside.txt', 'link.txt', '/etc/passwd', '/etc/new-file']) {
    assert.match(await call('edit', { path: place, old_text: 'a', new_text: 'b' }), 'is outside of the workspace')
    assert.match(await call('write', { path: place, content: 'b' }), 'is outside of the workspace')
    assert.match(await call('read', { path: place }), 'is outside of the workspace')
  }
  assert.match(
    await call('write', { path: '.git/hooks/pre-commit', content: 'b' }),
    'internal files of git cannot be written',
  )
  assert.is(world.questions.length, 0)
})

test('old_text must occur exactly once', async () => {
  await call('read', { path: 'src/twice.js' })
  const edit = (more: object) => call('edit', { path: 'src/twice.js', old_text: 'x', new_text: 'y', ...more })
  assert.match(await edit({ old_text: 'z' }), 'old_text is not in src/twice.js as it is written')
  assert.match(await edit({}), 'old_text is in src/twice.js 2 times')
  assert.match(await edit({ old_text: '' }), 'old_text is empty')
  assert.match(await edit({ new_text: 'x' }), 'nothing would change')
  assert.match(await edit({ old_text: 7 }), 'old_text has to be a text')
  assert.is(await edit({ replace_all: true }), 'replaced it 2 times in src/twice.js')
  assert.is(world.file('src/twice.js'), 'y\ny\n')
})

test('a passage with other line endings is found, and the file keeps its own', async () => {
  await call('read', { path: 'src/dos.txt' })
  await call('edit', { path: 'src/dos.txt', old_text: 'one\ntwo', new_text: 'three\nfour' })
  assert.is(readFileSync(path.join(world.root, 'src/dos.txt'), 'utf8'), 'three\r\nfour\r\n')
})

test('a new file is written with its folders; an existing one only after it was read', async () => {
  assert.is(
    await call('write', { path: 'new/deep/file.txt', content: 'fresh\n' }),
    'wrote 6 bytes to new/deep/file.txt',
  )
  assert.is(world.file('new/deep/file.txt'), 'fresh\n')
  assert.is(world.questions[0].toolCall.content[0].oldText ?? null, null)
  assert.match(await call('write', { path: 'new/deep/file.txt', content: 'fresh\n' }), 'has exactly this text already')
  writeFileSync(path.join(world.root, 'there.txt'), 'mine\n')
  assert.match(await call('write', { path: 'there.txt', content: 'x' }), 'has not been read yet')
})

test('binary files, non-files and missing files are not read', async () => {
  assert.match(await call('read', { path: 'picture.bin' }), 'is not UTF-8 text')
  assert.match(await call('read', { path: 'src' }), 'is a folder')
  assert.match(await call('read', { path: 'nowhere.txt' }), 'does not exist')
  assert.match(await call('read', { path: '' }), 'path has to be a text')
  assert.match(await call('read', {}), 'path has to be a text')
})

test('a long file is read in parts, and one of 10 MB is refused with an error', async () => {
  writeFileSync(path.join(world.root, 'long.txt'), Array.from({ length: 5000 }, (_, at) => `line ${at + 1}\n`).join(''))
  const first = await call('read', { path: 'long.txt' })
  assert.match(first, /\[lines 1 to 2000 of 5000; go on with offset 2001\]$/)
  assert.match(
    await call('read', { path: 'long.txt', offset: 4999, limit: 5 }),
    /^line 4999\nline 5000\n\[lines 4999 to 5000/,
  )
  assert.match(await call('read', { path: 'long.txt', offset: 9000 }), 'has only 5000 lines')
  assert.match(await call('read', { path: 'long.txt', offset: 'x' }), 'offset has to be a whole number')
  writeFileSync(path.join(world.root, 'huge.txt'), 'x'.repeat(10_000_000))
  assert.match(await call('read', { path: 'huge.txt' }), 'has 10000000 bytes; 4194304 can be read')
})

test('files are searched by content and by path', async () => {
  assert.is(await call('grep', { pattern: 'NEEDLE', ignore_case: true }), 'notes.md:1: a needle here')
  assert.is(await call('grep', { pattern: 'needle', glob: '*.js' }), 'nothing matches')
  assert.is(await call('grep', { pattern: 'needle', path: 'notes.md' }), 'notes.md:1: a needle here')
  assert.is(await call('glob', { pattern: 'src/*.js' }), 'src/sum.js\nsrc/twice.js')
  assert.is(await call('glob', { pattern: '*.{md,js}' }), 'notes.md\nsrc/sum.js\nsrc/twice.js')
  assert.is(await call('glob', { pattern: 'x.y' }), 'no file matches')
  assert.match(await call('grep', { pattern: '(' }), 'the pattern is not a valid regular expression')
  assert.match(await call('grep', { pattern: 'a', path: '..' }), 'is outside of the workspace')
  assert.match(await call('glob', { pattern: '{a' }), 'the braces of the glob do not match')
})

test('an endless pattern is aborted', async () => {
  writeFileSync(path.join(world.root, 'as.txt'), `${'a'.repeat(60)}!\n`)
  assert.match(await call('grep', { pattern: '^(a+)+$' }), 'the pattern takes too long')
})

test('a command runs after a question in a terminal of the client, without the key in its environment', async () => {
  const output = await call('run', { command: 'echo "key=$OPENAI_API_KEY"; pwd' })
  assert.is(output, `key=\n${world.root}\n[exit code 0]`)
  assert.equal(world.questions[0].toolCall.rawInput, { command: 'echo "key=$OPENAI_API_KEY"; pwd' })
  assert.ok(world.updates.some(update => update.content?.[0]?.type === 'terminal'))
  assert.is(world.call().status, 'completed')
})

test('a command that fails or times out is reported as such', async () => {
  assert.is(await call('run', { command: 'echo no; exit 3' }), 'no\n[exit code 3]')
  assert.is(world.call().status, 'failed')
  assert.is(
    await call('run', { command: 'echo begun; sleep 30', timeout_seconds: 1 }),
    'begun\n[killed after the timeout of 1 s]',
  )
  const long = await call('run', { command: 'head -c 200000 /dev/zero | tr "\\0" x' })
  assert.ok(long.length < 60_000 && long.includes('characters left out'), `${long.length}`)
  assert.match(await call('run', { command: ' ' }), 'a command has 1 to')
})

test('a rejected command does not run', async () => {
  answer = 'reject_once'
  assert.match(await call('run', { command: 'touch ran' }), 'the person refused it')
  assert.not(existsSync(path.join(world.root, 'ran')))
})

test('an allow-always answer applies to the same command only', async () => {
  answer = 'allow_always'
  await calls(['run', { command: 'true' }], ['run', { command: 'true' }], ['run', { command: ':' }])
  assert.equal(
    world.questions.map(({ toolCall }) => toolCall.title),
    ['true', ':'],
  )
})

test('a turn ends as canceled when its question is answered with cancelled', async () => {
  answer = 'cancelled'
  world.model.script([{ calls: [{ name: 'run', input: { command: 'touch ran' } }] }])
  assert.equal(await world.prompt('go'), { stopReason: 'cancelled' })
  assert.not(existsSync(path.join(world.root, 'ran')))
})

test('a plan is sent to the client', async () => {
  const entries = [
    { content: 'look', status: 'completed' },
    { content: 'mend', status: 'in_progress' },
  ]
  assert.is(await call('plan', { entries }), 'the plan has 2 steps')
  const plan = world.updates.find(({ sessionUpdate }) => sessionUpdate === 'plan')
  assert.equal(
    plan.entries.map(({ content, status }: { content: string; status: string }) => ({ content, status })),
    entries,
  )
  assert.match(await call('plan', { entries: [] }), 'entries has to be a list')
  assert.match(await call('plan', { entries: [{ content: 'x', status: 'soon' }] }), 'each entry has content')
})

test.run()
