import type { ClientContext } from '../acp/api.js'
import { type PromptedFor, SessionErrors } from './api.js'
import type { SessionsContext } from './context.js'
import type { Stop } from './lifecycle/stopping.js'
import type { AssembledPrompt, Deniable, StopWish } from './points.js'
import type { SessionRow } from './table.js'
import type { PromptRow } from './turn/prompts.js'
import type { TurnRequest } from './turn/turn.js'
import { infoOf } from './wire.js'

/** Returns the value that the taps passed on. Throws `hook_denied` (403) when a tap refused. */
export function allowed<T extends Deniable>(value: T): T {
  if (value.deny !== undefined) throw SessionErrors.hook_denied(value.deny)
  return value
}

/** Asks the `permission` gate for one session. */
export function permissionGate({ permission }: SessionsContext, sessionId: string): ClientContext['gate'] {
  return async wanted => {
    let judgedAs = wanted.toolKind
    let isAllowed = false
    const judgeAs = (kind: string) => {
      judgedAs = kind
    }
    const allow = () => {
      isAllowed = true
    }
    const refusal = await permission.ask({ ...wanted, sessionId, judgeAs, allow })
    return { judgedAs, isAllowed, ...(refusal && { refusal }) }
  }
}

/** Notifies taps of a stop. Only a stop that can be refused is awaited. Rejects with `hook_denied` (403). */
export function aboutToStop(
  { points }: SessionsContext,
  row: SessionRow,
  { reason, isRefusable = false }: Stop,
): Promise<StopWish> | undefined {
  if (row.state === 'stopped') return undefined
  const wish = points.preStop.run({ reason, isRefusable }, infoOf(row))
  return isRefusable ? wish.then(allowed) : undefined
}

/** The prompt after all taps that may change it. Throws `hook_denied` (403). */
export async function submitted(
  { points }: SessionsContext,
  row: SessionRow | undefined,
  submission: { readonly message: string; readonly source: string },
): Promise<Pick<PromptRow, 'text' | 'context_blocks'>> {
  if (!row) return { text: submission.message, context_blocks: null }
  const input = await points.inputPreSubmit.run({ ...submission, contextBlocks: [] }, infoOf(row))
  const { message, contextBlocks = [] } = allowed(input)
  return { text: message, context_blocks: contextBlocks.length > 0 ? JSON.stringify(contextBlocks) : null }
}

/**
 * The line for the agent about the author of a prompt. Names come from outside: they are quoted here and bounded at their source.
 */
const personBlock = ({ id, name, via }: PromptedFor): string =>
  `The message below comes from ${JSON.stringify(name)} (id ${JSON.stringify(id)}) by ${via}, not from the operator of this daemon.`

/** The texts and metadata of a prompt, in order, after all taps that may change them. Throws `hook_denied` (403). */
export async function assembled(
  { points }: SessionsContext,
  row: SessionRow,
  promptTexts: readonly string[],
  { source, contextBlocks: written, onBehalfOf }: Pick<TurnRequest, 'source' | 'contextBlocks' | 'onBehalfOf'>,
): Promise<Pick<AssembledPrompt, 'texts' | 'meta'>> {
  const person = onBehalfOf ? [personBlock(JSON.parse(onBehalfOf))] : []
  const prompt = { texts: promptTexts, source, contextBlocks: [...person, ...(written ? JSON.parse(written) : [])] }
  const { texts, contextBlocks = [], meta } = allowed(await points.promptPostAssemble.run(prompt, infoOf(row)))
  return { texts: [...texts.slice(0, -1), ...contextBlocks, ...texts.slice(-1)], ...(meta && { meta }) }
}
