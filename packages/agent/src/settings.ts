import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The endpoint, and the folder of stored conversations. */
export interface Settings {
  /** Undefined if not configured; a prompt then fails with instructions. */
  readonly baseUrl: string | undefined
  readonly apiKey: string | undefined
  /** Undefined: the first model that the endpoint lists. */
  readonly model: string | undefined
  /** Context window in tokens. Undefined: that of the endpoint, else {@link DEFAULT_WINDOW}. */
  readonly window: number | undefined
  /** Folder of the transcripts. */
  readonly stateFolder: string
  /** Milliseconds until an answer must begin; long, because a model may have to be loaded first. */
  readonly silenceMs: number
  /** Milliseconds without data after which a stream is given up. */
  readonly stallMs: number
  /** Name of the configured endpoint, for error messages. */
  readonly endpointName: string
}

/** Tokens; small local models have at least this window. */
export const DEFAULT_WINDOW = 32_768
const MIN_WINDOW = 1024
const MAX_WINDOW = 16_777_216
const SILENCE_MS = 300_000
const STALL_MS = 120_000

/** Variables that are withheld from the model's commands. */
export const SECRET_VARIABLES: readonly string[] = ['OPENAI_API_KEY']

/**
 * Reads the settings from the environment.
 * @throws With a message for a person if a setting is invalid.
 */
export function settingsOf(env: NodeJS.ProcessEnv): Settings {
  const text = (name: string) => env[name]?.trim() || undefined
  return {
    baseUrl: checkedUrl(text('OPENAI_BASE_URL')),
    apiKey: text('OPENAI_API_KEY'),
    model: text('SVC_MODEL') ?? text('OPENAI_MODEL'),
    window: whole('OPENAI_CONTEXT_WINDOW', text('OPENAI_CONTEXT_WINDOW'), MIN_WINDOW, MAX_WINDOW),
    stateFolder: stateFolder(env),
    silenceMs: whole('SVC_AGENT_SILENCE_MS', text('SVC_AGENT_SILENCE_MS'), 100, 3_600_000) ?? SILENCE_MS,
    stallMs: whole('SVC_AGENT_STALL_MS', text('SVC_AGENT_STALL_MS'), 100, 3_600_000) ?? STALL_MS,
    endpointName: text('SVC_PROVIDER') ?? 'svc',
  }
}

function checkedUrl(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Error('OPENAI_BASE_URL is not an http or https URL; it looks like http://127.0.0.1:11434/v1')
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('OPENAI_BASE_URL has a password in it; give it as OPENAI_API_KEY')
  }
  return value.replace(/\/+$/, '')
}

function whole(name: string, value: string | undefined, min: number, max: number): number | undefined {
  if (value === undefined) return undefined
  const number = Number(value)
  if (Number.isInteger(number) && number >= min && number <= max) return number
  throw new Error(`${name} is not a whole number from ${min} to ${max}`)
}

/** The folder that the caller names, else a folder below the XDG state folder. */
function stateFolder(env: NodeJS.ProcessEnv): string {
  const named = env.SVC_AGENT_STATE
  if (named && isAbsolute(named)) return named
  const base = env.XDG_STATE_HOME
  return join(base && isAbsolute(base) ? base : join(homedir(), '.local', 'state'), 'svc-agent')
}
