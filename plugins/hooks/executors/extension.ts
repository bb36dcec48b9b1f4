import type { MaybeToken, PluginKernel } from '../../../kernel/plugin.js'
import { type ExtensionsApi, HOOK_METHOD } from '../../extensions/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'

type ExtensionKernel = PluginKernel<{ extensions: MaybeToken<ExtensionsApi> }>

/**
 * Asks the process of an extension, which stays like a warm program: `hooks/execute` with `{ hook, event, payload }`, answered by
 * `{ "patch": … }`. Rejects with what is wrong: it does not run, it did not name the event in its handshake, it answered with an
 * error or something else.
 */
export async function askExtension(
  { needs }: ExtensionKernel,
  { name, event, timeoutMs }: DeclaredHook,
  key: string,
  payload: HookPayload,
): Promise<unknown> {
  const extensions = needs.extensions.current
  if (!extensions) throw new Error('there are no extensions in this daemon')
  const answer = await extensions.call(key, HOOK_METHOD, { hook: name, event, payload }, { timeoutMs })
  if (answer === null || answer === undefined) return undefined
  if (typeof answer !== 'object' || Array.isArray(answer))
    throw new Error('the process of an extension answers with an object that has a patch, or null')
  return (answer as { readonly patch?: unknown }).patch
}
