/** JSON-RPC error codes; the daemon's own are between -32000 and -32099, with their name in `data.code`. */
export const RPC_CODES = {
  request_failed: -32000,
  capability_denied: -32001,
  method_unavailable: -32002,
  rate_limited: -32003,
  not_initialized: -32004,
  too_many_requests: -32005,
  result_too_large: -32006,
  method_not_found: -32601,
  invalid_params: -32602,
  internal_error: -32603,
} as const
export type RpcCode = keyof typeof RPC_CODES

/** An RPC error; `data.code` is the stable name. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message)
  }

  toWire(): { readonly code: number; readonly message: string; readonly data?: unknown } {
    return { code: this.code, message: this.message, ...(this.data === undefined ? {} : { data: this.data }) }
  }
}

/** Creates one of the daemon's errors by name. */
export function rpcError(code: RpcCode, message: string, data: Readonly<Record<string, unknown>> = {}): RpcError {
  return new RpcError(RPC_CODES[code], message, { code, ...data })
}
