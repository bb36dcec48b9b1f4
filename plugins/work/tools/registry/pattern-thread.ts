import { Worker } from 'node:worker_threads'
import { Serial } from '../../../../kernel/kit/serial.js'

/** Whether a text matches a pattern, and with which flags it is one. */
export type Question = readonly [pattern: string, flags: string, text: string]

/** For the patterns of one input, so much that a busy machine does not refuse what is right. */
const MOST_MS = 1000

/**
 * Text and not a module of its own: it is the same for sources, bundles and tests, which lie in other places. Only a script with a
 * time limit can be ended while a pattern is tried, and the thread goes on with the next question.
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

/** Tries patterns that somebody else wrote in a thread of its own: none of them can hold up the daemon. */
export class PatternThread {
  #thread: Worker | undefined
  readonly #turns = new Serial()

  /** The answers in their order; undefined when they take too long, or the thread ended over them. */
  ask(questions: readonly Question[]): Promise<readonly boolean[] | undefined> {
    return this.#turns.run(() => this.#ask(questions))
  }

  /** Ends the thread; a later question starts another. */
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
      // It needs none of the daemon's environment, which may hold secrets.
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
