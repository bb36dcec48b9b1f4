import { mkdir } from 'node:fs/promises'
import { parseJson } from '../../../../kernel/kit/text.js'
import { type Clock, messageOf, within } from '../../../../kernel/plugin.js'
import type { ReasoningEffort } from '../../../../schemas/agents.js'
import { type ProcessHandle, readLines } from '../../../platform/processes/api.js'
import { factsOf, isEffort } from './parse.js'
import type { FoundModel, ModelSource } from './source.js'

const TIMEOUT_MS = 30_000
/** Bytes of a line, and invalid lines in a row. */
const MAX_BYTES = 4 * 1024 * 1024
const MAX_JUNK = 1000
const METHOD_NOT_FOUND = -32601

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const objectsIn = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Source of the models of a provider's agent: it is started in an empty folder, asked for a session, and stopped. */
export function acpSource(
  provider: string,
  folder: string,
  clock: Clock,
  start: (cwd: string) => Promise<ProcessHandle>,
): ModelSource {
  return {
    id: `acp:${provider}`,
    kind: 'acp',
    provider,
    async read(signal) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const child = await start(folder)
      const abort = () => child.kill()
      signal.addEventListener('abort', abort, { once: true })
      try {
        const opened = await within(clock, TIMEOUT_MS, openSession(child, folder))
        return modelsOffered(opened).map(facts => ({ provider, facts }))
      } catch (error) {
        throw new Error(`its agent: ${messageOf(error)}`, { cause: error })
      } finally {
        signal.removeEventListener('abort', abort)
        await child.stop({ graceMs: 200, termMs: 1000 })
      }
    },
  }
}

/**
 * The models in the answer to `session/new`: the values of its option `model`, with details from its list of models;
 * without that option, the list itself.
 */
export function modelsOffered(opened: unknown): FoundModel['facts'][] {
  if (!isObject(opened)) return []
  const options = objectsIn(opened.configOptions)
  const option = options.find(({ category, id }) => category === 'model' || id === 'model')
  const listed = objectsIn(isObject(opened.models) ? opened.models.availableModels : undefined)
  // Values can be grouped.
  const values = objectsIn(option?.options).flatMap(one => (one.options ? objectsIn(one.options) : [one]))
  const ofList = (value: unknown) => listed.find(({ modelId }) => modelId === value)
  const entries =
    values.length === 0 ? listed : values.map(({ value, name }) => ({ ...ofList(value), id: value, name }))
  const efforts = effortsIn(options.find(({ category }) => category === 'thought_level'))
  return entries.flatMap(entry => {
    const facts = factsOf(entry)
    return facts ? [{ ...facts, ...(efforts.length > 0 && { reasoning_efforts: efforts }) }] : []
  })
}

const effortsIn = (option: Json | undefined): ReasoningEffort[] =>
  objectsIn(option?.options).flatMap(({ value }) => (isEffort(value) ? [value] : []))

/** The answer of an agent to `session/new`. Rejects if it refuses, exits, or exceeds the limits. */
function openSession(child: ProcessHandle, cwd: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.stderr.resume()
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const take = (message: Json) => {
      // Requests of the agent are refused: it was started only to read its models.
      if (message.method !== undefined && message.id !== undefined)
        return send({ id: message.id, error: { code: METHOD_NOT_FOUND, message: 'Method not found' } })
      if (message.method !== undefined || (message.id !== 1 && message.id !== 2)) return undefined
      if (isObject(message.error)) return reject(new Error(String(message.error.message ?? 'it refused')))
      if (message.id === 2) return resolve(message.result)
      return send({ id: 2, method: 'session/new', params: { cwd, mcpServers: [] } })
    }
    const read = readLines(child.stdout, {
      ...{ owner: 'models', lineBytes: MAX_BYTES, junk: MAX_JUNK },
      take(line) {
        const message = parsed(line)
        if (message) take(message)
        return message !== undefined
      },
    })
    read.catch(error => {
      child.kill()
      reject(error)
    })
    child.stdin.on('error', () => {})
    void child.exited.then(({ code, signal }) => reject(new Error(`it ended (${signal ?? code})`)))
    const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false }
    send({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: 1, clientInfo: { name: 'svc', version: '1' }, clientCapabilities },
    })
  })
}

function parsed(line: string): Json | undefined {
  try {
    const value = parseJson(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
