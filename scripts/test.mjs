// Runs the tests: `node scripts/test.mjs [--no-build] [--proofs] [--without=path] [path or part of a name ...]`. Files whose first
// line begins with `// proof` (kills, models, whole programs) run only if named; `--proofs` runs only them.
//
// All sources are bundled once (test/bundle.mjs). Several processes each run one file after another. A file whose first line
// begins with `// alone` or `// proof` gets its own process, and one with `// unbundled` a process in which each module is a
// separate file. Only proofs wait for the disk (test/no-sync.mjs). A file should take at most 60 s, or the time in its first
// line, such as `// timeout: 120s`; after three times that its process group is killed. A file also fails if it has no test; if
// it leaves a process behind, in its group or (Linux) with its inherited environment; if it changes global state that other files
// see (test/process-state.mjs); if Node reports a deprecation; or if a daemon that it runs violates the contract in a reply,
// which is recorded by test/harness/watch-replies.mjs. The last line counts tests; a failed file counts as at least one.
//
// All temporary files are in a folder that is removed at the end of the run. Files run in order of their last duration, the longest
// first, or with SVC_SEED in an order derived from the seed. SVC_TEST_SHARE=1/2 runs every second file of that order: jobs for
// different Node releases split the files, differently with each seed. SVC_TEST_PROCESSES is the number of concurrent files.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { bundleTests, removeBundle } from './test/bundle.mjs'
import { root } from './test/sources.mjs'
import { translateStacks } from './test/stacks.mjs'
import { endAll, WorkerProcess, watcher } from './test/worker-process.mjs'

/** One more than the processors, because some files mostly wait. */
const atOnce = Number(process.env.SVC_TEST_PROCESSES ?? Math.min(8, availableParallelism() + 1))
const defaultSeconds = 60
/** Factor on a file's time limit before it is killed: only a hanging file needs it all, and a busy machine is slow. */
const patience = 3
const slowMs = 5000
const durationsFile = join(root, 'node_modules/.cache/svc-test/durations.json')

async function main(args) {
  const wanted = args.filter(arg => !arg.startsWith('--'))
  const without = args.find(arg => arg.startsWith('--without='))?.slice('--without='.length)
  const known = ['--no-build', '--proofs', `--without=${without}`]
  const unknown = args.find(arg => arg.startsWith('--') && !known.includes(arg))
  if (unknown) {
    const usage = 'node scripts/test.mjs [--no-build] [--proofs] [--without=path] [path or part of a name ...]'
    console.error(`unknown argument ${unknown}; usage: ${usage}`)
    return 2
  }
  const begun = performance.now()
  if (!args.includes('--no-build') && !build()) return summary(0, 1)
  const { files: all, missing } = select(wanted, args.includes('--proofs'))
  const found = all.filter(file => without === undefined || !file.startsWith(without))
  for (const name of missing) console.log(`FAIL  no test file matches ${name}`)
  if (found.length === 0) return summary(0, missing.length)
  const durations = readDurations()
  const files = shareOf(inOrder(found, durations))
  const counts = { passed: 0, failed: missing.length, ms: {} }
  useTemporaryFolder()
  const bundle = await bundleTests(files).catch(error => console.log(`FAIL  the bundle of the tests: ${error.message}`))
  if (bundle === undefined) return summary(0, 1)
  try {
    await runAll(files, bundle, (file, result) => {
      report(file, result, bundle)
      counts.ms[file] = result.ms
      counts.passed += result.passed
      counts.failed += result.failed
    })
  } finally {
    removeBundle(bundle)
  }
  writeDurations({ ...durations, ...counts.ms })
  reportSlow(Object.entries(counts.ms), performance.now() - begun)
  return summary(counts.passed, counts.failed)
}

/**
 * Creates the temporary folder of the run and removes it at exit, because killed processes remove nothing. The name is short: a
 * socket path has at most 107 bytes. Other users of the machine write into it too.
 */
function useTemporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 't-'))
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  // test/harness/home-template.ts shares catalogs between the processes of the run here.
  process.env.SVC_TEST_TEMPLATES = join(folder, 'templates')
  mkdirSync(process.env.SVC_TEST_TEMPLATES)
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 2 }))
}

/** Longest first, or shuffled by the seed. */
function inOrder(files, durations) {
  const seed = process.env.SVC_SEED
  const key = file => createHash('sha256').update(`${seed} ${file}`).digest('hex')
  if (seed !== undefined)
    return files
      .map(file => [key(file), file])
      .sort()
      .map(([, file]) => file)
  return files.sort((a, b) => (durations[b] ?? Infinity) - (durations[a] ?? Infinity) || a.localeCompare(b))
}

/**
 * The files of this run's share, by SVC_TEST_SHARE. The variable is removed, so that a runner started by a test runs all its files.
 */
function shareOf(files) {
  const [, turn, turns] = (/^(\d+)\/(\d+)$/.exec(process.env.SVC_TEST_SHARE ?? '1/1') ?? []).map(Number)
  delete process.env.SVC_TEST_SHARE
  if (!(turn >= 1 && turn <= turns)) throw new Error('SVC_TEST_SHARE: must be a share such as 1/2')
  return files.filter((_, n) => n % turns === turn - 1)
}

/** Runs the files in several processes; each process is reused while it is fit. */
async function runAll(files, bundle, done) {
  const queue = [...files]
  const lane = async () => {
    let shared
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const { alone, proof, unbundled, seconds } = rulesOf(file)
      if (!alone && !shared?.fit) shared = new WorkerProcess(bundle)
      const worker = alone ? new WorkerProcess(unbundled ? undefined : bundle, { proof }) : shared
      const result = await runFile(file, worker, { alone, seconds, bundle })
      if (worker.fit && (alone || result.failed > 0)) await worker.end()
      done(file, result)
    }
    if (shared?.fit) await shared.end()
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, files.length) }, lane))
}

/** The rules in the first line of a file. */
function rulesOf(file) {
  const [first = ''] = readFileSync(join(root, file), 'utf8').split('\n', 1)
  const seconds = Number(/^\/\/ .*\btimeout: (\d+)s\b/.exec(first)?.[1] ?? defaultSeconds)
  const unbundled = /^\/\/ unbundled\b/.test(first)
  const proof = /^\/\/ proof\b/.test(first)
  return { seconds: seconds * patience, proof, unbundled, alone: unbundled || proof || /^\/\/ alone\b/.test(first) }
}

/** Reports the slowest files, and those above the time that a file should take. */
function reportSlow(durations, ms) {
  const slowest = durations.sort(([, a], [, b]) => b - a).filter(([, ms], index) => ms > slowMs || index < 10)
  const seconds = ms => `${(ms / 1000).toFixed(1)} s`
  if (durations.length > 20) {
    console.log(`slowest of ${durations.length} files, which took ${seconds(ms)}:`)
    for (const [file, ms] of slowest)
      console.log(`  ${seconds(ms).padStart(7)}  ${file}${ms > slowMs ? '  (over 5 s)' : ''}`)
  }
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
    .filter(name => name.endsWith('.test.ts') && !name.includes('node_modules'))
    .map(name => relative(root, join(folder, name)))
}

async function runFile(file, worker, { alone, seconds, bundle }) {
  const begun = performance.now()
  const { output, timedOut, test, left, changes, replies, ...exit } = await worker.run(file, { alone, seconds })
  const ms = Math.round(performance.now() - begun)
  const against = await judge(replies, bundle)
  const deprecated = [...new Set(output.match(/(?<=\[)DEP\d+(?=\] DeprecationWarning)/g))]
  const lines = [
    ...left.map(line => `left behind: ${line}`),
    ...changes.map(name => `changed for other files: ${name}`),
    ...against.map(line => `not by the contract: ${line}`),
  ]
  const problems = [
    against.length > 0 ? `${against.length} replies are not by the contract` : '',
    timedOut ? `timed out after ${seconds} s${test === undefined ? '' : ` in "${test}"`}` : '',
    left.length > 0 ? `left ${left.length} processes` : '',
    deprecated.length > 0 ? `uses what Node deprecates: ${deprecated.join(', ')}` : '',
    changes.length > 0 ? `changed ${changes.join(', ')} and is not \`// alone\`` : '',
  ]
  return { ...verdict(output, exit, problems.filter(Boolean)), ms, output: [output, ...lines].join('\n') }
}

/** The reply checker, loaded once because it compiles the schemas of the contract. */
let judging

/** Contract violations in a file of recorded replies, as lines; removes the file. */
async function judge(replies, bundle) {
  if (!watcher || !existsSync(replies)) return []
  judging ??= import(pathToFileURL(bundle).href).then(({ modules }) => modules['test/harness/judge-replies.ts']())
  const lines = (await judging).judgeReplies(replies)
  rmSync(replies, { force: true })
  return lines
}

/** Counts from the last summary of uvu, and all other problems with how the file ended. */
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

function report(file, { passed, failed, problems, ms, output }, bundle) {
  const count = failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} passed`
  const why = problems.length > 0 ? `  (${problems.join('; ')})` : ''
  console.log(`${failed > 0 ? 'FAIL' : 'ok  '}  ${file}  ${count}  ${(ms / 1000).toFixed(1)} s${why}`)
  if (failed > 0) console.log(translateStacks(output, bundle).trimEnd())
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
    endAll()
    process.exit(130)
  })
}
process.exitCode = await main(process.argv.slice(2))
