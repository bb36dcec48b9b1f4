import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import type { Actor } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import { rpcError } from './rpc-error.js'

/** The process that calls. */
export interface HostCaller {
  readonly extension: InstalledExtension
  /** Methods that it was offered and accepted. */
  readonly permissions: readonly string[]
  /** As whom it reads and publishes its records. */
  readonly publisher: Actor
  /** As whom it does everything else. */
  readonly caller: Actor
  /** Aborts when the process is being ended. */
  readonly signal: AbortSignal
  /** Sends it a notification, and resolves when that was taken by its pipe. */
  notify(method: string, params: unknown): Promise<void>
  /** The value, as it is now, of a variable that its manifest is given by a secret. @throws Fault `extension_launch_invalid` */
  secret(name: string): Promise<string | undefined>
}

/** @throws RpcError `invalid_params` */
export function checkedParams<S extends v.GenericSchema>(schema: S, params: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, params)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw rpcError('invalid_params', `${v.getDotPath(issue) ?? 'parameters'}: ${issueText(issue)}`)
}
