import * as v from 'valibot'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import type { Actor } from '../../../kernel/plugin.js'
import type { ExtensionStorage, InstalledExtension } from '../extensions/api.js'
import { rpcError } from './rpc-error.js'

/** The calling process. */
export interface HostCaller {
  readonly extension: InstalledExtension
  /** Methods that were offered to it and accepted. */
  readonly permissions: readonly string[]
  /** The actor for its own records. */
  readonly publisher: Actor
  /** The actor for everything else. */
  readonly caller: Actor
  readonly storage: ExtensionStorage
  /** Aborts when the process is stopped. */
  readonly signal: AbortSignal
  /** Sends a notification; resolves when the pipe accepted it. */
  notify(method: string, params: unknown): Promise<void>
  /** The current value of a declared secret variable. @throws Fault `extension_launch_invalid` */
  secret(name: string): Promise<string | undefined>
}

/** @throws RpcError `invalid_params` */
export function checkedParams<S extends v.GenericSchema>(schema: S, params: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, params)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw rpcError('invalid_params', `${issueLine(issue, 'parameters')}`)
}
