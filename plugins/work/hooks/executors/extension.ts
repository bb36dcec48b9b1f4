import { HOOK_METHOD } from '../../../delivery/extensions/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import type { K } from '../needs.js'

/**
 * Calls `hooks/execute` with `{ hook, event, payload }` in the process of an extension, which returns `{ "patch": … }` or null.
 * Rejects when the process is not running, does not support the event, or returns an error or an invalid answer.
 */
export async function askExtension(
  { needs }: K,
  { name, event, timeoutMs }: DeclaredHook,
  key: string,
  payload: HookPayload,
): Promise<unknown> {
  const extensions = needs.extensions.current
  if (!extensions) throw new Error('the extensions plugin is not available')
  const answer = await extensions.call(key, HOOK_METHOD, { hook: name, event, payload }, { timeoutMs })
  if (answer === null || answer === undefined) return undefined
  if (typeof answer !== 'object' || Array.isArray(answer))
    throw new Error('the extension process must answer with {"patch": …} or null')
  return (answer as { readonly patch?: unknown }).patch
}
