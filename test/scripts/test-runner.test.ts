// proof, timeout: 120s: runs of the runner itself
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../harness/until.js'
import { scratchTree } from './scratch-tree.js'

const tree = scratchTree()
const uvu = `import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
`
const child = (name: string, options: string) => `
const child = spawn('sleep', ['1000'], { stdio: 'ignore'${options} })
child.unref()
writeFileSync('${name}.pid', String(child.pid))
`

tree.write({
  'test/pass.test.ts': `${uvu}test('a', () => assert.ok(true))\ntest('b', async () => assert.not(false))\ntest.run()\n`,
  'test/fail.test.ts': `${uvu}test('a', () => assert.ok(true))\ntest('broken one', () => assert.is(1 as number, 2))\ntest.run()\n`,
  'test/deep/zero.test.ts': `${uvu}console.log('nothing here', typeof test)\n`,
  'test/deep/throws.test.ts': `throw new Error('at import')\n`,
  'test/exit.test.ts': `// alone: it says so when it ends\n${uvu}test('a', () => assert.ok(true))\ntest.run()\nprocess.on('exit', () => { process.exitCode = 3 })\n`,
  'test/hang.test.ts': `// timeout: 2s\n${uvu}${child('hang', '')}test('a', () => new Promise(() => setInterval(() => {}, 1000)))\ntest.run()\n`,
  'test/leaves.test.ts': `${uvu}${child('leaves', '')}test('a', () => assert.ok(true))\ntest('b', () => assert.ok(true))\ntest.run()\n`,
  'test/leaves-detached.test.ts': `${uvu}${child('leaves-detached', ', detached: true')}test('a', () => assert.ok(true))\ntest.run()\n`,
  'test/escapes.test.ts': `${uvu}${child('escapes', ", detached: true, env: { PATH: '/usr/bin:/bin' }").replace("stdio: 'ignore'", "stdio: 'inherit'")}test('a', () => assert.ok(true))\ntest.run()\n`,
  'test/shared/a.test.ts': `${uvu}globalThis.left = 1\nprocess.env.LEFT = '1'\nDate.now = () => 0\ntest('a', () => assert.ok(true))\ntest.run()\n`,
  'test/shared/b.test.ts': `${uvu}test('b', () => assert.is(globalThis.left, undefined))\ntest.run()\n`,
  'test/pids/a.test.ts': `${uvu}writeFileSync('a.pid', String(process.pid))\ntest('a', () => assert.ok(true))\ntest.run()\n`,
  'test/pids/b.test.ts': `${uvu}writeFileSync('b.pid', String(process.pid))\ntest('b', () => assert.ok(true))\ntest.run()\n`,
  'test/pids/c.test.ts': `// alone: as it says\n${uvu}writeFileSync('c.pid', String(process.pid))\ntest('c', () => assert.ok(true))\ntest.run()\n`,
  'test/old.test.ts': `${uvu}process.emitWarning('do not', 'DeprecationWarning', 'DEP0000')\ntest('a', () => assert.ok(true))\ntest.run()\n`,
  'test/open.test.ts': `// timeout: 30s\n${uvu}test('a', () => { setInterval(() => {}, 1000); assert.ok(false) })\ntest.run()\n`,
  ...Object.fromEntries(
    (['tests', 'proofs'] as const).map(kind => [
      `test/sync-${kind}.test.ts`,
      `${kind === 'proofs' ? '// proof: it syncs\n' : ''}${uvu}import fs, { openSync, closeSync } from 'node:fs'
test('a', async () => {
  assert.is(fs.fsync === fs.fdatasync, ${kind === 'tests'})
  const file = openSync('test/sync-${kind}.test.ts', 'r')
  fs.fsyncSync(file)
  await new Promise<void>((done, fail) => fs.fdatasync(file, error => (error ? fail(error) : done())))
  closeSync(file)
  assert.throws(() => fs.fdatasyncSync(file), /EBADF/)
  const handle = await fs.promises.open('test/sync-${kind}.test.ts')
  await handle.sync()
  await handle.close()
  assert.is(await handle.datasync().catch(error => error.code), 'EBADF')
})
test.run()\n`,
    ]),
  ),
  'test/never.test.ts': `${uvu}test('a', () => new Promise(() => {}))\ntest.run()\n`,
  'test/late.test.ts': `${uvu}test('a', () => { assert.ok(true); setTimeout(() => Promise.reject(new Error('too late')), 50) })\ntest.run()\n`,
  'test/nothing.test.ts': `${uvu}test('a', () => {})\ntest('b', () => assert.is.not(1 as number, 2))\ntest.run()\n`,
  'test/share.test.ts': `${uvu}test('a', () => assert.is(process.env.SVC_TEST_SHARE, undefined))\ntest.run()\n`,
  'test/not-a-test.ts': 'throw new Error("not to be run")\n',
})

test.after(() => tree.remove())

/** With one process for all files, so that it is known which of them share it. */
const run = (...args: string[]) => runWith({}, ...args)

async function runWith(
  env: NodeJS.ProcessEnv,
  ...args: string[]
): Promise<{ code: number; lines: string[]; out: string }> {
  const runner = spawn(process.execPath, ['scripts/test.mjs', ...args], {
    cwd: tree.path,
    env: { ...process.env, SVC_TEST_PROCESSES: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(runner, 'exit')
  const [out, err] = await Promise.all([text(runner.stdout), text(runner.stderr)])
  const [code] = await exit
  return { code, out: out + err, lines: out.trimEnd().split('\n') }
}

function isRunning(pidFile: string): boolean {
  const pid = Number(readFileSync(join(tree.path, pidFile), 'utf8'))
  try {
    return process.kill(pid, 0) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Resolves when a process is gone: one that is killed goes on until it is given the processor. */
async function ended(pidFile: string): Promise<true> {
  await until(() => !isRunning(pidFile), 'the end of the process')
  return true
}

test('a passing file prints one line with count and seconds, and the sum last', async () => {
  const { code, lines } = await run('--no-build', 'test/pass.test.ts')
  assert.is(code, 0)
  assert.is(lines.length, 2)
  assert.match(lines[0]!, /^ok {4}test\/pass\.test\.ts {2}2 passed {2}\d+\.\d s$/)
  assert.is(lines[1], '2 passed, 0 failed')
})

test('a failing test prints its file and output', async () => {
  const { code, lines, out } = await run('--no-build', 'fail')
  assert.is(code, 1)
  assert.match(lines[0]!, /^FAIL {2}test\/fail\.test\.ts {2}1 passed, 1 failed {2}\d+\.\d s$/)
  assert.match(out, 'broken one')
  assert.match(out, /at .*test\/fail\.test\.ts:6:/, 'its places are those of the sources')
  assert.is(lines.at(-1), '1 passed, 1 failed')
})

test('a file without tests, an exception at import and a bad exit code are failures', async () => {
  const { code, out, lines } = await run('--no-build', 'deep', 'exit')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/deep\/zero\.test\.ts {2}0 passed, 1 failed {2}.*\(no tests\)/)
  assert.match(out, 'nothing here')
  assert.match(out, /FAIL {2}test\/deep\/throws\.test\.ts .*\(no tests, exit code 1\)/)
  assert.match(out, 'at import')
  assert.match(out, /FAIL {2}test\/exit\.test\.ts {2}1 passed, 1 failed {2}.*\(exit code 3\)/)
  assert.is(lines.at(-1), '1 passed, 3 failed')
})

test('files share a process, except those marked as alone', async () => {
  const { code } = await run('--no-build', 'test/pids')
  assert.is(code, 0)
  const [a, b, c] = ['a', 'b', 'c'].map(name => readFileSync(join(tree.path, `${name}.pid`), 'utf8'))
  assert.is(a, b)
  assert.is.not(a, c)
})

test('a file that changes shared process state fails by name, and later files get a new process', async () => {
  const { code, out, lines } = await run('--no-build', 'test/shared')
  assert.is(code, 1)
  for (const name of ['globalThis.left', 'Date.now', 'process.env.LEFT'])
    assert.match(out, `changed for other files: ${name}`)
  assert.match(out, /FAIL {2}test\/shared\/a\.test\.ts {2}1 passed, 1 failed {2}.*and is not `\/\/ alone`\)/)
  assert.match(out, /ok {4}test\/shared\/b\.test\.ts {2}1 passed/)
  assert.is(lines.at(-1), '2 passed, 1 failed')
})

test('a test without an assertion fails', async () => {
  const { code, out } = await run('--no-build', 'test/nothing')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/nothing\.test\.ts {2}1 passed, 1 failed/)
  assert.match(out, 'it asserts nothing')
})

test('a file that uses a deprecated Node API fails with the code of the warning', async () => {
  const { code, out } = await run('--no-build', 'test/old')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/old\.test\.ts {2}1 passed, 1 failed {2}.*\(uses what Node deprecates: DEP0000\)/)
})

test('endless tests and failures after the tests are failures of their file', async () => {
  const { code, out, lines } = await run('--no-build', 'test/never', 'test/late', 'test/pass')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/never\.test\.ts {2}0 passed, 1 failed {2}.*\(no tests, exit code 1\)/)
  assert.match(out, /FAIL {2}test\/late\.test\.ts {2}1 passed, 1 failed {2}.*\(exit code 1\)/)
  assert.match(out, 'too late')
  assert.is(lines.at(-1), '3 passed, 2 failed')
})

test('only proofs sync, and a sync of a closed file fails in all', async () => {
  const { code, lines } = await run('--no-build', 'test/sync-tests.test.ts', 'test/sync-proofs.test.ts')
  assert.is(code, 0, lines.join('\n'))
  assert.is(lines.at(-1), '2 passed, 0 failed')
})

test('a failed file ends soon, whatever its test left open', async () => {
  const { code, out, lines } = await run('--no-build', 'test/open.test.ts')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/open\.test\.ts {2}0 passed, 1 failed {2}\d+\.\d s\n/)
  assert.is(lines.at(-1), '0 passed, 1 failed')
})

test('a hanging file is killed with its group', async () => {
  const { code, out, lines } = await run('--no-build', 'test/hang.test.ts')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/hang\.test\.ts {2}0 passed, 1 failed {2}.*\(timed out after 6 s in "a"\)/)
  assert.is(lines.at(-1), '0 passed, 1 failed')
  assert.ok(await ended('hang.pid'))
})

test('a file that leaves a process behind fails, and the process is killed', async () => {
  const { code, out, lines } = await run('--no-build', 'leaves')
  assert.is(code, 1)
  assert.match(out, /FAIL {2}test\/leaves\.test\.ts {2}2 passed, 1 failed {2}.*\(left 1 processes\)/)
  assert.match(out, 'sleep 1000')
  assert.ok(await ended('leaves.pid'))
  // Where environments can be read, also one that left the group.
  if (existsSync('/proc/self/environ')) {
    assert.match(out, /FAIL {2}test\/leaves-detached\.test\.ts .*\(left 1 processes\)/)
    assert.ok(await ended('leaves-detached.pid'))
    assert.is(lines.at(-1), '3 passed, 2 failed')
  } else process.kill(Number(readFileSync(join(tree.path, 'leaves-detached.pid'), 'utf8')))
})

test('an unreachable process does not block the runner', async () => {
  const { code, lines } = await run('--no-build', 'escapes')
  process.kill(Number(readFileSync(join(tree.path, 'escapes.pid'), 'utf8')), 'SIGKILL')
  assert.is(code, 0)
  assert.is(lines.at(-1), '1 passed, 0 failed')
})

test('an interrupted runner ends its processes', async () => {
  const runner = spawn(process.execPath, ['scripts/test.mjs', '--no-build', 'test/hang.test.ts'], { cwd: tree.path })
  const before = readFileSync(join(tree.path, 'hang.pid'), 'utf8')
  while (['', before].includes(readFileSync(join(tree.path, 'hang.pid'), 'utf8')))
    await new Promise(resolve => setTimeout(resolve, 20))
  runner.kill('SIGTERM')
  const [code] = await once(runner, 'exit')
  assert.is(code, 130)
  assert.ok(await ended('hang.pid'))
})

test('shares of one seed have each file once, and invalid shares are refused', async () => {
  const files = ['test/pids/a.test.ts', 'test/pids/b.test.ts', 'test/pids/c.test.ts', 'test/pass.test.ts']
  const ranOf = async (share: string) => {
    const { code, lines } = await runWith({ SVC_TEST_SHARE: share, SVC_SEED: '7' }, '--no-build', ...files)
    assert.is(code, 0, share)
    return lines.slice(0, -1).map(line => /test\/\S+/.exec(line)?.[0])
  }
  const [one, two] = [await ranOf('1/2'), await ranOf('2/2')]
  assert.equal([one.length, two.length], [2, 2])
  assert.equal([...one, ...two].sort(), [...files].sort())
  assert.is((await ranOf('2/10')).length, 1)
  assert.is((await runWith({ SVC_TEST_SHARE: '1/1' }, '--no-build', 'test/share.test.ts')).code, 0)
  assert.is.not((await runWith({ SVC_TEST_SHARE: '3/2' }, '--no-build', ...files)).code, 0)
})

test('all tests run without arguments, after a build; an argument without a match is a failure', async () => {
  const small = scratchTree()
  try {
    const source = `${uvu}import { one } from '../dist/index.js'\ntest('built', () => assert.is(one, 1))\ntest.run()\n`
    small.write({ 'kernel/index.ts': 'export const one: number = 1\n', 'test/built.test.ts': source })
    const runIn = async (...args: string[]) => {
      const runner = spawn(process.execPath, ['scripts/test.mjs', ...args], { cwd: small.path })
      const exit = once(runner, 'exit')
      const lines = (await text(runner.stdout)).trimEnd().split('\n')
      return { code: (await exit)[0], lines }
    }
    assert.equal((await runIn()).lines.at(-1), '1 passed, 0 failed')
    const missing = await runIn('--no-build', 'no-such-test')
    assert.equal(missing, { code: 1, lines: ['FAIL  no test file matches no-such-test', '0 passed, 1 failed'] })
    assert.is((await runIn('--no-such-option')).code, 2)
    small.write({ 'kernel/index.ts': 'export const one = ;\n' })
    const broken = await runIn()
    assert.is(broken.code, 1)
    assert.is(broken.lines.at(-1), '0 passed, 1 failed')
  } finally {
    small.remove()
  }
})

test.run()
