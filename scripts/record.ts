import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { TerminalScreen } from './record/screen.js'
import { type Frame, svgOf } from './record/svg.js'

// `npm run docs:recording [folder]`: records a terminal on an empty home. `run.svg`: `svc run` with the built-in agent, its
// questions answered, animated. `board.svg`: `svc task board` with running, waiting and blocked tasks.

const root = fileURLToPath(new URL('..', import.meta.url))
const columns = 80
/** Milliseconds between keys, before an answer, and the minimum and maximum duration of a frame. */
const keyMs = 45
const answerMs = 1200
const shortestMs = 120
const longestMs = 1500
/** Time limit in milliseconds until the board shows the expected states. */
const boardMs = 60_000

const output = process.argv[2] ?? join(root, 'docs')
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-demo-')))
const project = join(folder, 'website')
const env = {
  PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
  HOME: folder,
  SVC_HOME: join(folder, 'home'),
  TERM: 'xterm-256color',
  LANG: 'C.UTF-8',
}
const svc = join(root, 'dist/bin/svc')
const call = (...args: string[]) =>
  execFileSync(process.execPath, [svc, ...args], { cwd: project, env, encoding: 'utf8' })

try {
  makeProject()
  await write('run.svg', 'svc run --agent report "Report on this folder"', 26)
  await makeTasks()
  await write('board.svg', 'svc task board', 27)
} finally {
  execFileSync(process.execPath, [svc, 'daemon', 'stop'], { env, stdio: 'ignore' })
  rmSync(folder, { recursive: true, force: true })
}

async function write(name: string, typed: string, rows: number): Promise<void> {
  const frames = await record(typed, rows)
  writeFileSync(join(output, name), svgOf(frames, columns, rows, typed))
  console.log(`${join(output, name)}: ${frames.length} frames`)
}

/** Creates a small repository for the agent, and a home whose daemon uses any free port. */
function makeProject(): void {
  const files = {
    'home/config.json': '{ "http": { "port": 0 } }',
    'website/index.html': '<!doctype html>\n<title>Website</title>\n<script src="main.js"></script>\n',
    'website/main.js': '// TODO: load the articles\nconsole.log("hello")\n',
    'website/README.md': '# Website\n',
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com']
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['commit', '-qm', 'First version'],
  ])
    execFileSync('git', [...identity, ...args], { cwd: project, env })
}

/**
 * Creates the tasks of a small site: one whose agent waits for an answer, one that waits for another task, and one that waits for a
 * person.
 */
async function makeTasks(): Promise<void> {
  const create = (title: string) =>
    JSON.parse(call('task', 'create', title, '--workspace', '.', '--json')).task.id as string
  const [articles, page, links] = [
    create('Report on the articles'),
    create('Draw the home page'),
    create('Check every link'),
  ] as const
  call('task', 'dependency', 'add', page, articles)
  call('task', 'profile', 'set', articles, '--agent', 'report')
  for (const id of [articles, page, links]) call('task', 'start', id)
  call('task', 'block', links, '--kind', 'needs_input', '--reason', 'Which links of the archive?')
  const late = AbortSignal.timeout(boardMs)
  while (!call('task', 'board').includes('running')) {
    if (late.aborted) throw new Error(`no task runs:\n${call('task', 'board')}`)
    await sleep(200)
  }
}

async function record(typed: string, rows: number): Promise<Frame[]> {
  const screen = new TerminalScreen(columns, rows)
  const frames: Frame[] = []
  const show = (ms: number) => frames.push({ lines: screen.shown.map(line => [...line]), ms })
  screen.write('$ ')
  for (const key of typed) {
    screen.write(key)
    show(keyMs)
  }
  show(answerMs / 2)
  screen.write('\r\n')

  const [, ...args] = typed.match(/"[^"]*"|\S+/g) ?? []
  const words = args.map(word => word.replaceAll('"', ''))
  const sized = ['/bin/sh', '-c', `stty cols ${columns} rows ${rows}; exec "$@"`, 'sh', process.execPath, svc, ...words]
  const terminal = join(root, 'test/fixtures/terminal.py')
  const child = spawn('python3', [terminal, ...sized], { cwd: project, env, stdio: ['pipe', 'pipe', 'inherit'] })
  let since = performance.now()
  let answering: NodeJS.Timeout | undefined
  let all = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const now = performance.now()
    if (now - since >= shortestMs) {
      show(Math.min(now - since, longestMs))
      since = now
    }
    screen.write(text)
    all += text
    // The question stays on the screen until it is answered, and every redraw resets the timer.
    clearTimeout(answering)
    const line = screen.shown.at(-1)?.map(({ char }) => char)
    if (line?.join('').startsWith('Allow?')) answering = setTimeout(() => child.stdin.write('y\r'), answerMs)
  })
  const code = await new Promise<number | null>(resolve => child.once('close', resolve))
  show(longestMs)
  if (code !== 0) throw new Error(`${typed} ended with ${code}:\n${all}`)
  return frames
}
