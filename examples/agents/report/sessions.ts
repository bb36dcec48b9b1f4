import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { SessionUpdate } from '@agentclientprotocol/sdk'

/** One conversation. `history` and `turns` outlive the process, the rest does not. */
export interface Session {
  readonly id: string
  readonly cwd: string
  /** Prompt turns so far: makes the ids of tool calls unique in the session. */
  turns: number
  /** What `session/load` replays, oldest first. */
  readonly history: SessionUpdate[]
  /** Answers "always" of the user, by what was asked for; never written to the disk. */
  readonly decisions: Map<string, 'allowed' | 'rejected'>
  /** Ends the turn that runs, if one does. */
  running?: AbortController
}

const MAX_HISTORY = 200
const MAX_RECORDED_TEXT = 64 * 1024
const MAX_FILE_BYTES = 32 * 1024 * 1024
const MAX_FILES = 1_000
const ID = /^report-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const REPLAYED: ReadonlySet<unknown> = new Set<SessionUpdate['sessionUpdate']>([
  'user_message_chunk',
  'agent_message_chunk',
  'tool_call',
])

/** Where the sessions of this user are kept: XDG's place for state. */
export function stateDirectory(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_STATE_HOME
  return join(base && isAbsolute(base) ? base : join(homedir(), '.local', 'state'), 'svc-report-agent')
}

export function newSession(cwd: string): Session {
  return { id: `report-${randomUUID()}`, cwd, turns: 0, history: [], decisions: new Map() }
}

/** One JSON file a session, so that processes which run at the same time never write to the same file. */
export class SessionStore {
  constructor(private readonly directory: string) {}

  /** Replaces the session's file whole. A disk that cannot be written costs only the later `session/load`. */
  save({ id, cwd, turns, history }: Session): void {
    const file = this.#file(id)
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 })
      rmSync(`${file}.tmp`, { force: true })
      writeFileSync(`${file}.tmp`, JSON.stringify({ id, cwd, turns, history }), { flag: 'wx', mode: 0o600 })
      renameSync(`${file}.tmp`, file)
      this.#removeOldest()
    } catch (error) {
      console.error(`session_not_saved: ${id} cannot be loaded later: ${error}`)
    }
  }

  /** Reads a session for work in `cwd`; undefined when there is none of that id. */
  load(id: string, cwd: string): Session | undefined {
    // The id comes from the client and becomes part of a path.
    if (!ID.test(id)) return undefined
    try {
      const found = statSync(this.#file(id))
      if (!found.isFile()) throw new Error('it is not a regular file')
      if (found.size > MAX_FILE_BYTES) throw new Error('the file is too large')
      const stored: unknown = JSON.parse(readFileSync(this.#file(id), 'utf8'))
      if (!isStored(stored)) throw new Error('the file does not hold a session')
      const history = stored.history.filter(update => REPLAYED.has(update?.sessionUpdate)).slice(-MAX_HISTORY)
      return { ...newSession(cwd), id, turns: stored.turns, history }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') console.error(`session_unreadable: ${id}: ${error}`)
      return undefined
    }
  }

  #file(id: string): string {
    return join(this.directory, `${id}.json`)
  }

  #removeOldest(): void {
    const names = readdirSync(this.directory).filter(name => ID.test(name.replace(/\.json$/, '')))
    if (names.length <= MAX_FILES) return
    const files = names.map(name => ({
      name,
      changed: statSync(join(this.directory, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    files.sort((a, b) => b.changed - a.changed)
    for (const { name } of files.slice(MAX_FILES)) rmSync(join(this.directory, name), { force: true })
  }
}

/**
 * Adds an update to the history that `session/load` replays: messages as they came, a tool call as it stands after its
 * last update. When the history is full the oldest tool call goes first, so that the conversation itself stays longest.
 */
export function remember(history: SessionUpdate[], update: SessionUpdate): void {
  switch (update.sessionUpdate) {
    case 'user_message_chunk':
    case 'agent_message_chunk':
      history.push(update.content.type === 'text' ? { ...update, content: shortened(update.content) } : update)
      break
    case 'tool_call':
      history.push({ ...update, content: kept(update.content) })
      break
    case 'tool_call_update': {
      const { sessionUpdate: _, ...change } = update
      const index = history.findLastIndex(entry => {
        return entry.sessionUpdate === 'tool_call' && entry.toolCallId === change.toolCallId
      })
      const call = history[index]
      if (call?.sessionUpdate !== 'tool_call') return
      history[index] = {
        ...call,
        ...(change.status ? { status: change.status } : {}),
        ...(change.content ? { content: kept(change.content) } : {}),
      }
      break
    }
  }
  while (history.length > MAX_HISTORY) {
    const oldestCall = history.findIndex(entry => entry.sessionUpdate === 'tool_call')
    history.splice(Math.max(0, oldestCall), 1)
  }
}

type ToolContent = NonNullable<Extract<SessionUpdate, { sessionUpdate: 'tool_call' }>['content']>

/** Without terminals, which end with their process, and diffs, which would store every report twice. */
function kept(content: ToolContent = []): ToolContent {
  return content.filter(item => item.type === 'content')
}

function shortened<T extends { text: string }>(content: T): T {
  return content.text.length <= MAX_RECORDED_TEXT
    ? content
    : { ...content, text: content.text.slice(0, MAX_RECORDED_TEXT) }
}

function isStored(value: unknown): value is { turns: number; history: SessionUpdate[] } {
  if (typeof value !== 'object' || value === null || !('turns' in value) || !('history' in value)) return false
  return Number.isSafeInteger(value.turns) && Array.isArray(value.history)
}
