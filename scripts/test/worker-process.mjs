// The runner's side of `worker.mjs`.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { end, leaveMs, markName, remaining } from './processes.mjs'
import { root } from './sources.mjs'

const program = join(root, 'scripts/test/worker.mjs')
const keptOutput = 256 * 1024
/** Memory in bytes above which a process gets no further file. */
const fullAt = 900 * 1024 * 1024
/** Most young objects of a test die with it: with V8's default of 16 MiB a third of the processor time is copying the others. */
const memoryFlags = ['--max-semi-space-size=64', '--min-semi-space-size=32']

const harness = name => [join(root, 'test/harness', name)].filter(existsSync)
/** The loader that records the replies of daemons, if this tree has it. */
export const [watcher] = harness('watch-replies.mjs')
const loaders = [...harness('typescript.mjs'), ...harness('watch-replies.mjs')]
const noSync = join(root, 'scripts/test/no-sync.mjs')

/** Running process groups. */
const running = new Set()
let started = 0

/** Kills all running process groups. */
export function endAll() {
  for (const group of running) end(group)
}

/** A process that runs test files, in its own process group. */
export class WorkerProcess {
  /** Whether the process may run another file. */
  fit = true
  #output = ''
  #files = 0
  /** The name of the test that runs. */
  #test
  /** Received text of each stream; data of the two streams arrives in any order. */
  #heard = new Map()
  /** The worker's end-of-file reports by stream. */
  #reports = new Map()
  #reported = () => {}

  /** With a bundle, files run from it; without one, from their sources. Only a proof waits until the disk has what it writes. */
  constructor(bundle, { proof = false } = {}) {
    const imports = [...loaders, ...(proof ? [] : [noSync])].flatMap(file => ['--import', file])
    this.mark = `${process.pid}.${++started}.${Math.trunc(performance.now())}`
    this.child = spawn(process.execPath, [...memoryFlags, ...imports, program, ...(bundle ? [bundle] : [])], {
      cwd: root,
      detached: true,
      env: {
        ...process.env,
        [markName]: this.mark,
        ...(bundle && { SVC_TEST_BUNDLE: bundle }),
        ...(watcher && { SVC_TEST_REPLIES: this.#repliesOf(0), SVC_TEST_WATCHER: watcher }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.group = { id: this.child.pid, mark: this.mark }
    running.add(this.group)
    this.exited = new Promise(done => this.child.once('exit', (code, signal) => done({ code, signal })))
    this.exited.then(() => {
      this.fit = false
    })
    this.ready = new Promise(done => this.child.once('message', done))
    this.child.on('message', ({ test }) => {
      this.#test = test
    })
    this.closed = new Promise(done => this.child.once('close', done))
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.setEncoding('utf8').on('data', text => this.#hear(stream, text))
    // An early exit of the process is handled by its exit event.
    this.child.on('error', () => {})
  }

  /**
   * Runs a file until it ends or exceeds its time limit. Resolves to `output`; `code` and `signal` as of its own process;
   * `timedOut`; `test`: the name of the test that had not ended, if any; `left`: lines about leftover processes; `changes` of global
   * state; and `replies`: the file of recorded daemon replies, if any.
   */
  async run(file, { alone, seconds }) {
    this.#output = ''
    this.#test = undefined
    this.#heard = new Map()
    this.#reports = new Map()
    const replies = this.#repliesOf(++this.#files)
    const reported = new Promise(done => {
      this.#reported = () => done(this.#reports.get(this.child.stdout))
    })
    const ended = Promise.race([reported, this.exited])
    await Promise.race([this.ready, this.exited])
    this.child.send({ file, alone, mark: this.mark, replies }, () => {})
    const late = sleep(seconds * 1000, undefined, { ref: false }).then(() => undefined)
    const exit = await Promise.race([ended, late])
    const left = exit === undefined ? [] : await remaining(this.group)
    const gone = exit === undefined || 'signal' in exit
    if (gone || left.length > 0 || exit.changes.length > 0 || exit.rss > fullAt) await this.end()
    return {
      output: this.#output,
      code: null,
      signal: null,
      changes: [],
      ...(exit ?? (await this.exited)),
      timedOut: exit === undefined,
      test: this.#test,
      left,
      replies,
    }
  }

  #repliesOf(file) {
    return join(tmpdir(), `svc-replies-${this.mark}.${file}`)
  }

  /** Kills the process and its group. */
  async end() {
    this.fit = false
    end(this.group)
    await this.exited
    running.delete(this.group)
    await Promise.race([this.closed, sleep(leaveMs, undefined, { ref: false })])
    // A process outside of the group and without the mark may hold the streams open, and thereby the runner.
    this.child.stdout.destroy()
    this.child.stderr.destroy()
  }

  #hear(stream, text) {
    this.#output = (this.#output + text).slice(-keptOutput)
    const heard = ((this.#heard.get(stream) ?? '') + text).slice(-keptOutput)
    this.#heard.set(stream, heard)
    const report = new RegExp(`\\n${this.mark.replaceAll('.', '\\.')} (\\{.*\\})\\n`).exec(heard)
    if (report === null) return
    this.#output = this.#output.replace(report[0], '')
    this.#reports.set(stream, JSON.parse(report[1]))
    if (this.#reports.size === 2) this.#reported()
  }
}
