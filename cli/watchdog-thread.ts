import { spawn } from 'node:child_process'
import { closeSync, readFileSync, writeSync } from 'node:fs'
import { type Debugger, type Runtime, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { locationInCopy } from '../plugins/delivery/extensions/load/copy-path.js'
import { isStopAsked } from './daemon/home-notes.js'
import { Liveness } from './daemon/liveness.js'
import { openLog } from './daemon/log-file.js'
import { noteEnd, type Succession } from './daemon/restart-limit.js'
import { writeSuspect } from './daemon/suspect.js'
import { type Ask, BEATS, monotonicMs, STOPPING, type WatchdogData } from './daemon/watchdog-data.js'

/** The owner of code that blocks the main thread. */
export interface Culprit {
  /** Name of a plugin, or `unknown`. */
  readonly owner: string
  /** Function and code location, for people. */
  readonly where: string
}

const tickMs = 1000
/** Ticks after which even a main thread that seems to sleep is asked: it may wait in a system call. */
const askedAfter = 9
/** Seconds that an answer takes at most; a main thread that ran for longer did other work too. */
const answerSeconds = 0.005
/** Seconds that the main thread is blocked without a beat before its owner is determined, and before the process ends. */
const namedAfter = 2
const endedAfter = 5
/** Maximum milliseconds to wait until the main thread is paused: a thread in a system call cannot be. */
const pauseMs = 1000

const { beats, home, successor, log } = workerData as WatchdogData
const shared = new Int32Array(beats)
const liveness = new Liveness(home, shared)

/** Seconds for which the main thread has run, and for which it was ready but waited for a CPU. */
interface Scheduled {
  readonly ran: number
  readonly waited: number
  /** How often it was given a CPU. */
  readonly times: number
}

/** Scheduler data of the main thread, whose ID is the PID; zeros where the system has none. */
function scheduled(): Scheduled {
  try {
    const [ran = 0, waited = 0, times = 0] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8')
      .split(' ')
      .map(Number)
    return { ran: ran / 1e9, waited: waited / 1e9, times }
  } catch {
    return { ran: 0, waited: 0, times: 0 }
  }
}

let lastBeat = 0
/** Ticks of this thread without a beat of the main thread; a suspended machine has neither. */
let missed = 0
let atBeat = scheduled()
let held = 0
let culprit: Culprit | undefined
let looking = false
/** Ticks since the main thread was asked for a beat; 0 while a beat is due. */
let unasked = 0

ask()
setInterval(async () => {
  const beat = Atomics.load(shared, BEATS)
  const now = scheduled()
  if (unasked > 0 || beat !== lastBeat) {
    if (culprit) parentPort?.postMessage({ culprit, seconds: Math.round(held) })
    const isDue = isAwake(now, beat !== lastBeat) || unasked >= askedAfter
    lastBeat = beat
    missed = 0
    atBeat = now
    held = 0
    culprit = undefined
    if (isDue) ask()
    else unasked++
    liveness.tick(0)
    return
  }
  missed++
  // On an overloaded machine the main thread waits for a CPU and is not blocked.
  held = Math.max(missed - (now.waited - atBeat.waited), now.ran - atBeat.ran)
  liveness.tick(missed * tickMs)
  if (looking || held < namedAfter || (culprit && held < endedAfter)) return
  looking = true
  culprit = (await whoHoldsTheMainThread()) ?? culprit ?? { owner: 'unknown', where: 'a call that does not return' }
  looking = false
  // The main thread may have continued during the check.
  if (held >= endedAfter && Atomics.load(shared, BEATS) === lastBeat) end(culprit)
}, tickMs)

/** Asks the main thread for a beat. */
function ask(): void {
  unasked = 0
  parentPort?.postMessage({ askedAt: monotonicMs() } satisfies Ask)
}

/** Whether the main thread has run since the last tick, except for an answer. One that sleeps is not woken for a beat. */
function isAwake({ ran, times }: Scheduled, answered: boolean): boolean {
  const isKnown = times > 0
  return !isKnown || times - atBeat.times > (answered ? 1 : 0) || ran - atBeat.ran > answerSeconds
}

/** Pauses the main thread briefly and reads its stack; undefined when it does not stop. */
async function whoHoldsTheMainThread(): Promise<Culprit | undefined> {
  const session = new Session()
  try {
    session.connectToMainThread()
    const scripts = new Map<string, string>()
    session.on('Debugger.scriptParsed', ({ params }) => scripts.set(params.scriptId, params.url))
    const paused = new Promise<Debugger.CallFrame[] | undefined>(resolve => {
      session.once('Debugger.paused', ({ params }) => resolve(params.callFrames))
      setTimeout(resolve, pauseMs, undefined)
    })
    session.post('Debugger.enable')
    session.post('Debugger.pause')
    const frames = await paused
    if (!frames) return undefined
    const found = await nameOf(session, frames, scripts)
    session.post('Debugger.resume')
    return found
  } catch {
    return undefined
  } finally {
    session.disconnect()
  }
}

/** The owner of the code: by the top frame of a drop-in, else by the running guarded call, else unknown. */
async function nameOf(
  session: Session,
  frames: readonly Debugger.CallFrame[],
  scripts: ReadonlyMap<string, string>,
): Promise<Culprit> {
  const urlOf = (frame: Debugger.CallFrame) => scripts.get(frame.location.scriptId) ?? frame.url
  for (const frame of frames) {
    const owner = locationInCopy(urlOf(frame))?.name
    if (owner !== undefined) return { owner, where: placeOf(frame, urlOf(frame)) }
  }
  const top = frames[0]
  const where = top ? placeOf(top, urlOf(top)) : 'no function'
  for (const frame of frames) {
    const owner = await guardedBy(session, frame)
    if (owner !== undefined) return { owner, where }
  }
  return { owner: 'unknown', where }
}

const placeOf = ({ functionName, location }: Debugger.CallFrame, url: string) =>
  `${functionName || 'a function'} (${url.replace(/^.*\/(?=[^/]+\/[^/]+$)/, '')}:${location.lineNumber + 1})`

/** Finds the owner of a running function among its variables, regardless of their names. */
const RUNS_FOR = `function () {
  for (const value of Object.values(this)) {
    const owner = typeof value === 'object' && value !== null ? value[Symbol.for('svc.runs-for')] : undefined
    if (typeof owner === 'string') return owner
  }
}`

/** Guarded calls of the kernel, and work on behalf of an owner, hold an object that identifies the owner. */
async function guardedBy(session: Session, { scopeChain }: Debugger.CallFrame): Promise<string | undefined> {
  for (const { type, object } of scopeChain) {
    const { objectId } = object
    if (objectId === undefined || !['local', 'block', 'closure'].includes(type)) continue
    const owner = await new Promise<unknown>(resolve => {
      const call: Runtime.CallFunctionOnParameterType = {
        objectId,
        functionDeclaration: RUNS_FOR,
        returnByValue: true,
        silent: true,
      }
      session.post('Runtime.callFunctionOn', call, (error, reply) =>
        resolve(error === null ? reply.result.value : undefined),
      )
    })
    if (typeof owner === 'string') return owner
  }
  return undefined
}

/** Only a signal ends the process: `process.exit` in a worker ends only the worker. */
function end({ owner, where }: Culprit): void {
  liveness.sample(missed * tickMs)
  liveness.flush()
  let succession: Succession = 'none'
  try {
    writeSuspect(home, {
      owner,
      where,
      at: new Date().toISOString(),
      pid: process.pid,
      blocked_seconds: Math.round(held),
    })
    succession = noteEnd(home, owner)
  } catch {
    // Without this count, successors could follow each other for ever.
  }
  const isStopping = Atomics.load(shared, STOPPING) === 1 || isStopAsked(home)
  const text = `the event loop of the daemon is blocked in ${where} of ${owner}: it is killed, and ${follows(succession, isStopping, owner)}`
  try {
    if (successor && succession !== 'none' && !isStopping) succeed(successor)
    else writeSync(2, `error: ${text}\n`)
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

function follows(succession: Succession, isStopping: boolean, owner: string): string {
  if (isStopping) return 'no other is started, because it was stopping'
  if (succession === 'normal') return `${owner} does not run after the next start`
  if (succession === 'safe mode') return 'the next start is in safe mode'
  return 'no other is started, because this happened too often; start it without extensions: svc daemon start --safe-mode'
}

/** Starts the next daemon, which waits for the lock of this one. */
function succeed(args: readonly string[]): void {
  try {
    const file = openLog(log)
    spawn(process.execPath, args, { cwd: home, detached: true, stdio: ['ignore', file, file] }).unref()
    closeSync(file)
  } catch {}
}
