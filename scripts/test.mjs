// Runs the tests: `node scripts/test.mjs [--no-build] [--proofs] [path or part of a name ...]`. Files whose first line begins with
// `// proof` (kills, models, whole programs) run when they are named, and alone with `--proofs`.
//
// A process a file, three at a time, 60 s each (or what a first line `// timeout: 120s` says), in a process group that is
// killed when the file has ended. A file also fails when it has no test, and when it leaves a process behind: one of its
// group, or (Linux) one that inherited its environment; and when a daemon in it, or one that it started with the
// variables of test/harness/watch-replies.mjs, answered something that is not by the contract. The last line counts tests, a failed file counting as one at
// least.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const atOnce = 3
const defaultSeconds = 60
/** How long a helper of the file's own process may take to notice that the file has ended. */
const leaveMs = 1000
const keptOutput = 256 * 1024
const markName = 'SVC_TEST_MARK'
const durationsFile = join(root, 'node_modules/.cache/svc-test/durations.json')

/** Writes down what daemons answer, where the tree has it. */
const watcherFile = join(root, 'test/harness/watch-replies.mjs')
const watcher = existsSync(watcherFile) ? watcherFile : undefined

/** Runs TypeScript, where the tree has it, faster than a loader that translates for each process. */
const loaderFile = join(root, 'test/harness/typescript.mjs')
const loader = existsSync(loaderFile) ? loaderFile : 'tsx'

/** What runs now, killed when the runner is interrupted. */
const running = new Set()

async function main(args) {
  const wanted = args.filter(arg => !arg.startsWith('--'))
  const unknown = args.find(arg => arg.startsWith('--') && arg !== '--no-build' && arg !== '--proofs')
  if (unknown) {
    const usage = 'node scripts/test.mjs [--no-build] [--proofs] [path or part of a name ...]'
    console.error(`unknown argument ${unknown}; usage: ${usage}`)
    return 2
  }
  if (!args.includes('--no-build') && !build()) return summary(0, 1)
  const { files, missing } = select(wanted, args.includes('--proofs'))
  for (const name of missing) console.log(`FAIL  no test file matches ${name}`)
  if (loader === loaderFile) await (await import('../test/harness/typescript-cache.mjs')).translateTree()
  const durations = readDurations()
  const queue = files.sort((a, b) => (durations[b] ?? Infinity) - (durations[a] ?? Infinity) || a.localeCompare(b))
  let passed = 0
  let failed = missing.length
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runFile(file)
      report(file, result)
      durations[file] = result.ms
      passed += result.passed
      failed += result.failed
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  writeDurations(durations)
  return summary(passed, failed)
}

function summary(passed, failed) {
  console.log(`${passed} passed, ${failed} failed`)
  return failed > 0 ? 1 : 0
}

function build() {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs', '--code'], { cwd: root })
  if (status !== 0) console.log(`FAIL  scripts/build.mjs --code\n${stdout}${stderr}`)
  return status === 0
}

function select(wanted, proofs) {
  const all = testsBelow(join(root, 'test'))
  if (wanted.length === 0) {
    const files = all.filter(file => isProof(file) === proofs)
    return { files, missing: files.length > 0 ? [] : ['test/**/*.test.ts'] }
  }
  const files = new Set()
  const missing = []
  for (const name of wanted) {
    const path = resolve(name)
    const found = !existsSync(path)
      ? all.filter(file => file.includes(name))
      : statSync(path).isDirectory()
        ? testsBelow(path)
        : [relative(root, path)]
    if (found.length === 0) missing.push(name)
    for (const file of found) files.add(file)
  }
  return { files: [...files], missing }
}

const isProof = file => readFileSync(join(root, file), 'utf8').startsWith('// proof')

function testsBelow(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true })
    .filter(name => name.endsWith('.test.ts'))
    .map(name => relative(root, join(folder, name)))
}

async function runFile(file) {
  const begun = performance.now()
  const seconds = Number(
    /^\/\/ (?:proof, )?timeout: (\d+)s\b/.exec(readFileSync(join(root, file), 'utf8'))?.[1] ?? defaultSeconds,
  )
  const mark = `${process.pid}.${begun}`
  const replies = watcher && join(tmpdir(), `svc-replies-${mark}`)
  const child = spawn(process.execPath, ['--import', loader, ...(watcher ? ['--import', watcher] : []), file], {
    cwd: root,
    detached: true,
    env: { ...process.env, [markName]: mark, ...(watcher && { SVC_TEST_REPLIES: replies, SVC_TEST_WATCHER: watcher }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const group = { id: child.pid, mark }
  running.add(group)
  let output = ''
  const keep = text => {
    output = (output + text).slice(-keptOutput)
  }
  child.stdout.setEncoding('utf8').on('data', keep)
  child.stderr.setEncoding('utf8').on('data', keep)
  const closed = new Promise(done => child.once('close', done))
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    end(group)
  }, seconds * 1000)
  const exit = await new Promise(done => child.once('exit', (code, signal) => done({ code, signal })))
  clearTimeout(timer)
  const left = timedOut ? [] : await remaining(group)
  end(group)
  running.delete(group)
  await Promise.race([closed, sleep(leaveMs, undefined, { ref: false })])
  // A process that escaped both group and mark may hold them open, and the runner with them.
  child.stdout.destroy()
  child.stderr.destroy()
  const ms = Math.round(performance.now() - begun)
  for (const line of left) keep(`\nleft behind: ${line}`)
  const against = watcher ? await judge(replies) : []
  for (const line of against) keep(`\nnot by the contract: ${line}`)
  const problems = [
    against.length > 0 ? `${against.length} replies are not by the contract` : '',
    timedOut ? `timed out after ${seconds} s` : '',
    left.length > 0 ? `left ${left.length} processes` : '',
  ]
  return { ...verdict(output, exit, problems.filter(Boolean)), ms, output }
}

/** The judge, loaded once: it compiles the schemas of the contract. */
let judging

/** Lines about the replies in a file that are not by the contract; the file goes. */
async function judge(replies) {
  if (!existsSync(replies)) return []
  judging ??= import('tsx/esm/api').then(({ tsImport }) =>
    tsImport('../test/harness/judge-replies.ts', import.meta.url),
  )
  const lines = (await judging).judgeReplies(replies)
  rmSync(replies, { force: true })
  return lines
}

/** Counts what uvu printed last, and finds what else is wrong with how the file ended. */
function verdict(output, { code, signal }, problems) {
  const plain = stripVTControlCharacters(output)
  const count = name => Number([...plain.matchAll(new RegExp(`^\\s*${name}:\\s+(\\d+)$`, 'gm'))].at(-1)?.[1] ?? 0)
  const total = count('Total')
  const passed = Math.min(count('Passed'), total)
  if (problems.length === 0) {
    if (signal) problems.push(`ended by ${signal}`)
    else if (total === 0) problems.push(code === 0 ? 'no tests' : `no tests, exit code ${code}`)
    else if (code !== 0 && passed === total) problems.push(`exit code ${code}`)
  }
  return { passed, failed: Math.max(total - passed, problems.length > 0 ? 1 : 0), problems }
}

function report(file, { passed, failed, problems, ms, output }) {
  const count = failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} passed`
  const why = problems.length > 0 ? `  (${problems.join('; ')})` : ''
  console.log(`${failed > 0 ? 'FAIL' : 'ok  '}  ${file}  ${count}  ${(ms / 1000).toFixed(1)} s${why}`)
  if (failed > 0) console.log(output.trimEnd())
}

/** What lives on of a file that has ended, as lines for people, after a moment to end by itself. */
async function remaining(group) {
  for (const until = performance.now() + leaveMs; ; await sleep(20)) {
    const left = members(group)
    if (left.length === 0 || performance.now() > until) return left.map(({ pid, command }) => `${pid} ${command}`)
  }
}

/** Kills the group, and what left it but still carries its mark. */
function end(group) {
  const kill = target => {
    try {
      process.kill(target, 'SIGKILL')
    } catch {}
  }
  const left = members(group)
  if (left.some(({ inGroup }) => inGroup)) kill(-group.id)
  for (const { pid, inGroup } of left) if (!inGroup) kill(pid)
}

function members({ id, mark }) {
  if (!existsSync('/proc/self/stat')) return membersByPs(id)
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const inGroup = Number(group) === id
      if (state === 'Z' || state === 'X') return []
      if (!inGroup && !`\0${readFileSync(`/proc/${name}/environ`)}`.includes(`\0${markName}=${mark}\0`)) return []
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 200)
      return [{ pid: Number(name), inGroup, command }]
    } catch {
      // Gone meanwhile, or not ours to read.
      return []
    }
  })
}

function membersByPs(id) {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,state=,command='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap(line => {
    const [pid, group, state = '', ...command] = line.trim().split(/\s+/)
    if (Number(group) !== id || state.startsWith('Z')) return []
    return [{ pid: Number(pid), inGroup: true, command: command.join(' ').slice(0, 200) }]
  })
}

function readDurations() {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8'))
  } catch {
    return {}
  }
}

function writeDurations(durations) {
  mkdirSync(dirname(durationsFile), { recursive: true })
  writeFileSync(`${durationsFile}.${process.pid}`, JSON.stringify(durations, undefined, 1))
  renameSync(`${durationsFile}.${process.pid}`, durationsFile)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    for (const group of running) end(group)
    process.exit(130)
  })
}
process.exitCode = await main(process.argv.slice(2))
