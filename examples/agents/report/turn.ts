import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AgentContext,
  type ClientCapabilities,
  type ContentBlock,
  RequestError,
  type StopReason,
  type ToolCall,
} from '@agentclientprotocol/sdk'
import { REPORTS_DIRECTORY, readDirectives, resolveTarget, type Target, TargetRefused } from './directives.js'
import { GIT_LOG, type GitHistory, isInRepository, parseGitLog } from './git-log.js'
import {
  countDirectories,
  countText,
  type Inspection,
  planReading,
  summarize,
  type TextCount,
  type Tree,
  walk,
} from './inspect.js'
import { askPermission } from './permission.js'
import { plural, renderNoteCount, renderReport, renderSummary } from './report.js'
import type { Session } from './sessions.js'
import { namedRun, type Outcome, workOnRun } from './task-run.js'
import { type OpenToolCall, Transcript } from './transcript.js'
import { Workspace } from './workspace.js'

const STEPS = ['List the files', 'Read the files', 'Read the git history', 'Write the report']

const MAX_LOCATIONS = 50

/** How a step ended, in words for the tool call, and what the turn goes on with. */
interface StepResult<T> {
  readonly value: T
  readonly status: 'completed' | 'failed'
  readonly text: string
}

type Written = { readonly written: true } | { readonly written: false; readonly reason: string }

/**
 * One prompt turn: look at the workspace, write the report, tell the client of each step. It works on behalf of the
 * user, so a refusal is an answer like any other: the turn goes on and says what is missing.
 */
export class Turn {
  readonly #transcript: Transcript
  readonly #workspace: Workspace
  readonly #signal: AbortSignal
  #calls = 0
  #pauseMs = 0

  constructor(
    private readonly client: AgentContext,
    capabilities: ClientCapabilities,
    private readonly session: Session,
    private readonly controller: AbortController,
  ) {
    this.#signal = controller.signal
    this.#transcript = new Transcript(client, session)
    this.#workspace = new Workspace(client, capabilities, session.id, session.cwd, controller.signal)
  }

  /** Ends with the turn's stop reason; rejects with the signal's reason when the turn is cancelled. */
  async run(prompt: readonly ContentBlock[]): Promise<StopReason> {
    const id = namedRun(prompt)
    const report = () => this.#report(prompt)
    return id === undefined ? (await report()).reason : workOnRun(id, report, text => this.#transcript.say(text))
  }

  async #report(prompt: readonly ContentBlock[]): Promise<Outcome> {
    const directives = readDirectives(prompt)
    this.#pauseMs = directives.pauseMs
    let target: Target
    try {
      target = await resolveTarget(this.session.cwd, directives.target)
    } catch (error) {
      if (!(error instanceof TargetRefused)) throw error
      await this.#transcript.say(`${error.message}\nNothing was inspected and nothing was written.`)
      return { reason: 'refusal', said: error.message, failure: error.message }
    }

    await this.#transcript.plan(STEPS, 0)
    const tree = await this.#list(target)
    await this.#transcript.plan(STEPS, 1)
    const inspection = await this.#read(tree)
    await this.#transcript.plan(STEPS, 2)
    const history = await this.#readHistory()
    await this.#transcript.plan(STEPS, 3)
    const report = renderReport(inspection, history)
    const outcome = await this.#write(target, report)
    await this.#transcript.plan(STEPS, STEPS.length)

    const summary = renderSummary(inspection)
    const said = `${summary}\nReport: ${target.absolute}`
    await this.#transcript.say(
      outcome.written
        ? said
        : `${summary}\nThe report was not written: ${outcome.reason}. It would have gone to ${target.absolute}. ` +
            `This is its text:\n\n${report}`,
    )
    return outcome.written
      ? { reason: 'end_turn', said }
      : { reason: 'end_turn', said, failure: `the report was not written: ${outcome.reason}` }
  }

  async #list(target: Target): Promise<Tree> {
    // Earlier reports are no part of what is reported, or each would differ from the one before.
    const excluded = new Set([target.relative, REPORTS_DIRECTORY])
    const head = { title: 'List files', kind: 'read' as const, locations: [{ path: this.session.cwd }] }
    const tree = await this.#step(head, async call => {
      await call.begin()
      const value = await walk(this.#workspace, excluded, this.#signal).catch(error => {
        this.#signal.throwIfAborted()
        const hint = 'the workspace cannot be listed; start a session in a directory that can be read'
        throw RequestError.internalError({ code: 'workspace_unreadable', reason: String(error) }, hint)
      })
      return { value, status: 'completed', text: `${plural(value.files.length, 'file')} found.` }
    })
    const where = plural(countDirectories(tree.files), 'directory', 'directories')
    await this.#transcript.say(`Found ${plural(tree.files.length, 'file')} in ${where}.`)
    return tree
  }

  /** One tool call a directory: one a file would bury the client in a large workspace. */
  async #read(tree: Tree): Promise<Inspection> {
    const counts = new Map<string, TextCount>()
    for (const { directory, files } of planReading(tree.files)) {
      const head = {
        title: `Read ${directory === '.' ? 'the top directory' : directory} (${plural(files.length, 'file')})`,
        kind: 'read' as const,
        locations: files.slice(0, MAX_LOCATIONS).map(file => ({ path: join(this.session.cwd, file.path) })),
      }
      await this.#step(head, async call => {
        await call.begin()
        let lines = 0
        const failures: string[] = []
        for (const { path } of files) {
          const content = await this.#workspace.read(path).catch(error => {
            this.#signal.throwIfAborted()
            failures.push(`${path}: ${reasonOf(error)}`)
            return undefined
          })
          const count = content === undefined ? undefined : countText(path, content)
          if (count) counts.set(path, count)
          lines += count?.lines ?? 0
        }
        const failed = failures.length > 0 ? ` Could not read ${failures.slice(0, 10).join('; ')}.` : ''
        const status = failures.length === files.length ? 'failed' : 'completed'
        return { value: undefined, status, text: `${plural(lines, 'line')}.${failed}` }
      })
    }
    const inspection = summarize(tree, counts)
    const { read, lines, noteCount } = inspection
    await this.#transcript.say(
      `Read ${plural(read, 'file')}: ${plural(lines, 'line')}, ${renderNoteCount(noteCount)}.` +
        (this.#workspace.clientReads ? '' : ' The client reads no files, so I read them myself.'),
    )
    return inspection
  }

  async #readHistory(): Promise<GitHistory> {
    const isRepository = isInRepository(this.session.cwd)
    if (!isRepository || !this.#workspace.clientRunsCommands) {
      const none: GitHistory = { kind: isRepository ? 'no_terminal' : 'no_repository' }
      await this.#transcript.say(describeHistory(none))
      return none
    }
    const line = [GIT_LOG.command, ...GIT_LOG.args].join(' ')
    const rawInput = { command: GIT_LOG.command, args: GIT_LOG.args, cwd: this.session.cwd }
    const head = { title: line, kind: 'execute' as const, locations: [{ path: this.session.cwd }], rawInput }
    const history = await this.#step<GitHistory>(head, async call => {
      if (!(await this.#allowed(line, call))) {
        return { value: { kind: 'not_permitted' }, status: 'failed', text: 'Not permitted.' }
      }
      try {
        const started = (terminalId: string) => call.begin({ type: 'terminal', terminalId })
        const { exitCode, output } = await this.#workspace.run(GIT_LOG, started)
        if (exitCode !== 0) {
          return { value: { kind: 'failed', exitCode }, status: 'failed', text: `Exit code ${exitCode ?? 'unknown'}.` }
        }
        const commits = parseGitLog(output)
        return {
          value: { kind: 'commits', commits },
          status: 'completed',
          text: `${plural(commits.length, 'commit')}.`,
        }
      } catch (error) {
        this.#signal.throwIfAborted()
        return { value: { kind: 'failed', exitCode: undefined }, status: 'failed', text: `${reasonOf(error)}.` }
      }
    })
    await this.#transcript.say(describeHistory(history))
    return history
  }

  /**
   * Writes first and asks when the client refuses: whether a write needs a permission is the client's to decide. Where
   * the client has no method for writing nobody else would ask, so the question comes before.
   */
  async #write(target: Target, report: string): Promise<Written> {
    const oldText = (await this.#workspace.readExisting(target.relative)) ?? null
    const head = {
      title: `Write ${target.relative}`,
      kind: 'edit' as const,
      locations: [{ path: target.absolute }],
      content: [{ type: 'diff' as const, path: target.absolute, oldText, newText: report }],
    }
    return this.#step<Written>(head, async call => {
      const subject = `write ${target.absolute}`
      const refused: Written = { written: false, reason: 'it was not permitted' }
      if (!this.#workspace.clientWrites && !(await this.#allowed(subject, call))) {
        return { value: refused, status: 'failed', text: 'Not permitted.' }
      }
      await call.begin()
      try {
        await this.#workspace.write(target.absolute, report).catch(async error => {
          this.#signal.throwIfAborted()
          // A person who refused it is not asked again.
          if (!this.#workspace.clientWrites || wasAnswered(error)) throw error
          if (!isPermissionError(error, target.absolute)) throw error
          // "Allow always" of an earlier turn did not reach this client's own rules: only "reject always" still counts.
          if (this.session.decisions.get(subject) === 'allowed') this.session.decisions.delete(subject)
          if (!(await this.#allowed(subject, call))) throw new Error('it was not permitted')
          await this.#workspace.write(target.absolute, report)
        })
        return {
          value: { written: true },
          status: 'completed',
          text: `${plural(Buffer.byteLength(report), 'byte')} written.`,
        }
      } catch (error) {
        this.#signal.throwIfAborted()
        const reason = reasonOf(error)
        return { value: { written: false, reason }, status: 'failed', text: `Not written: ${reason}.` }
      }
    })
  }

  /** A tool call around some work. However the work ends, the call never stays open. */
  async #step<T>(head: Omit<ToolCall, 'toolCallId' | 'status'>, work: (call: OpenToolCall) => Promise<StepResult<T>>) {
    if (this.#calls > 0 && this.#pauseMs > 0) await sleep(this.#pauseMs, undefined, { signal: this.#signal })
    this.#signal.throwIfAborted()
    const call = await this.#transcript.open({ toolCallId: `call-${this.session.turns}-${++this.#calls}`, ...head })
    try {
      const { value, status, text } = await work(call)
      await call.end(status, text)
      return value
    } catch (error) {
      await call.end('failed', this.#signal.aborted ? 'Cancelled.' : `${reasonOf(error)}.`).catch(() => {})
      throw error
    }
  }

  async #allowed(subject: string, call: OpenToolCall): Promise<boolean> {
    const decision =
      this.session.decisions.get(subject) ??
      (await askPermission(this.client, this.session, subject, call.head, this.#signal))
    // The client answers so when the user cancels the whole turn, whichever message comes first.
    if (decision === 'cancelled') this.controller.abort()
    this.#signal.throwIfAborted()
    return decision === 'allowed'
  }
}

function describeHistory(history: GitHistory): string {
  switch (history.kind) {
    case 'commits':
      return `Read the git history: ${plural(history.commits.length, 'commit')}.`
    case 'no_repository':
      return 'The folder is in no git repository; the report goes without a history.'
    case 'no_terminal':
      return 'The client offers no terminal; the report goes without the git history.'
    case 'not_permitted':
      return 'Reading the git history was not permitted; the report goes without it.'
    case 'failed':
      return 'The git history could not be read; the report goes without it.'
  }
}

/** Whether a refusal is the answer to a question, or one that nobody answered in time. */
const wasAnswered = (error: unknown) => /a person rejected|nobody answered/.test(reasonOf(error))

/** JSON-RPC has no code for "not permitted", so the words have to tell; the path, which may hold any word, is no witness. */
function isPermissionError(error: unknown, path: string): boolean {
  const data = error instanceof RequestError ? JSON.stringify(error.data ?? '') : ''
  return /permission|permitted|not.allowed|denied|forbidden|refus|approv|EACCES|EPERM/i.test(
    `${reasonOf(error)} ${data}`.replaceAll(path, ''),
  )
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500).replace(/[\s.]+$/, '')
}
