import { Worker } from 'node:worker_threads'
import { Serial } from '../../../../kernel/kit/serial.js'

/** A pattern, its flags and the text to match. */
export type Question = readonly [pattern: string, flags: string, text: string]

/** Milliseconds for all patterns of one input, enough for a busy machine to accept valid input. */
const MOST_MS = 1000

/**
 * Source text instead of a module file, because sources, bundles and tests have different layouts. Only a script with a
 * timeout can be interrupted in the middle of a match; the thread then continues with the next question.
 */
const THREAD = `
const { parentPort } = require('node:worker_threads')
const vm = require('node:vm')
const script = new vm.Script('run()')
const context = vm.createContext({ run: undefined })
parentPort.on('message', questions => {
  let answers
  context.run = () => { answers = questions.map(([pattern, flags, text]) => new RegExp(pattern, flags).test(text)) }
  try { script.runInContext(context, { timeout: ${MOST_MS} }) } catch { answers = undefined }
  parentPort.postMessage(answers)
})`

/** Evaluates untrusted patterns in a separate thread, so that none can block the daemon. */
export class PatternThread {
  #thread: Worker | undefined
  readonly #turns = new Serial()

  /** Answers in order; undefined on timeout, or if the thread ended. */
  ask(questions: readonly Question[]): Promise<readonly boolean[] | undefined> {
    return this.#turns.run(() => this.#ask(questions))
  }

  /** Ends the thread; a later question starts a new one. */
  async close(): Promise<void> {
    await this.#thread?.terminate()
  }

  #ask(questions: readonly Question[]): Promise<readonly boolean[] | undefined> {
    const thread = this.#started()
    return new Promise(resolve => {
      const done = (answers?: readonly boolean[]) => {
        thread.off('message', done)
        thread.off('exit', ended)
        thread.unref()
        resolve(answers)
      }
      const ended = () => done()
      thread.on('message', done)
      thread.on('exit', ended)
      thread.ref()
      thread.postMessage(questions)
    })
  }

  #started(): Worker {
    if (this.#thread) return this.#thread
    const thread = new Worker(THREAD, {
      eval: true,
      // An empty environment: the daemon's may contain secrets.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
    })
    thread.on('error', () => {})
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined
    })
    thread.unref()
    this.#thread = thread
    return thread
  }
}
