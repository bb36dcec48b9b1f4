import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ModelMessage, modelMessageSchema } from 'ai'
import { reasonOf } from '../text.js'
import { readPlain } from '../workspace/plain-file.js'
import { isMode, type Mode } from './modes.js'

/** The stored state of a conversation. */
export interface Transcript {
  readonly id: string
  readonly cwd: string
  readonly mode: Mode
  /** The model chosen for it. */
  readonly model: string | undefined
  /** Turns so far, which make the ids of tool calls unique. */
  readonly turns: number
  readonly messages: readonly ModelMessage[]
}

const MAX_BYTES = 16 * 1024 * 1024
const MAX_FILES = 500
const ID = /^svc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const newSessionId = () => `svc-${randomUUID()}`

/** One file per conversation, readable by its owner only. The oldest files are removed beyond a limit. */
export class TranscriptStore {
  #hasWarned = false

  constructor(private readonly folder: string) {}

  /** Replaces the whole file. A failed write only prevents a later `session/load`, and is logged once. */
  save(transcript: Transcript): void {
    const file = join(this.folder, `${transcript.id}.json`)
    try {
      const text = JSON.stringify({ version: 1, ...transcript })
      if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
      mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      rmSync(`${file}.tmp`, { force: true })
      writeFileSync(`${file}.tmp`, text, { flag: 'wx', mode: 0o600 })
      renameSync(`${file}.tmp`, file)
    } catch (error) {
      if (!this.#hasWarned)
        console.error(`session_not_saved: ${transcript.id} cannot be loaded later: ${reasonOf(error)}`)
      this.#hasWarned = true
    }
  }

  /** Makes room for a new file. */
  removeOldest(): void {
    try {
      const names = readdirSync(this.folder).filter(name => ID.test(name.replace(/\.json$/, '')))
      if (names.length < MAX_FILES) return
      const files = names.map(name => ({
        name,
        at: statSync(join(this.folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
      }))
      files.sort((a, b) => b.at - a.at)
      for (const { name } of files.slice(MAX_FILES - 1)) rmSync(join(this.folder, name), { force: true })
    } catch {
      // The folder does not exist yet.
    }
  }

  /** Undefined if there is no such transcript or it is unusable, which is logged to stderr. */
  async load(id: string): Promise<Transcript | undefined> {
    // The id comes from the client and becomes part of a path.
    if (!ID.test(id)) return undefined
    const file = join(this.folder, `${id}.json`)
    if (!statSync(file, { throwIfNoEntry: false })) return undefined
    try {
      return transcriptIn(id, JSON.parse((await readPlain(file, MAX_BYTES)).toString()))
    } catch (error) {
      console.error(`session_unreadable: ${id}: ${reasonOf(error)}`)
      return undefined
    }
  }
}

function transcriptIn(id: string, stored: unknown): Transcript {
  const { version, cwd, mode, model, turns, messages } = (stored ?? {}) as Record<string, unknown>
  if (version !== 1 || typeof cwd !== 'string' || !Array.isArray(messages)) throw new Error('it holds no conversation')
  return {
    id,
    cwd,
    mode: isMode(mode) ? mode : 'ask',
    model: typeof model === 'string' ? model : undefined,
    turns: Number.isSafeInteger(turns) ? Number(turns) : 0,
    messages: messages.map(message => modelMessageSchema.parse(message)),
  }
}
