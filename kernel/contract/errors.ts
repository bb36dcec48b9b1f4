/** Optional parts of a {@link Fault}; `next` is a command or step that helps, shown after the message. */
export interface FaultMore {
  readonly details?: Readonly<Record<string, string>> | undefined
  readonly next?: string | undefined
  readonly cause?: unknown
  /** Seconds; sent as Retry-After. */
  readonly retryAfter?: number | undefined
}

const mark: unique symbol = Symbol.for('svc.fault')

/** An error for a caller: a stable snake_case code, the HTTP status, a text that names the cause, and the next step. */
export class Fault extends Error {
  override readonly name = 'Fault'
  readonly [mark] = true
  readonly details?: Readonly<Record<string, string>> | undefined
  readonly next?: string | undefined
  readonly retryAfter?: number | undefined

  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    more: FaultMore = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.details = more.details
    this.next = more.next
    this.retryAfter = more.retryAfter
  }

  /** Recognizes a fault by its mark: extensions have their own copy of this module, and so of the class. */
  static override [Symbol.hasInstance](thrown: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass is recognized by its class
    if (this !== Fault) return super[Symbol.hasInstance](thrown)
    return typeof thrown === 'object' && thrown !== null && mark in thrown
  }
}

/** One declared error: HTTP status and the default text. */
export interface ErrorEntry {
  readonly status: number
  readonly message: string
  readonly next?: string
}

/** Makes the fault of one declared error; has its code and status. */
export interface FaultMaker {
  (message?: string, more?: FaultMore): Fault
  readonly code: string
  readonly status: number
}

/** A table of declared errors: under each name the function that makes its fault. */
export type ErrorTable<E extends Readonly<Record<string, ErrorEntry>>> = {
  readonly [K in keyof E]: FaultMaker
} & { readonly [errorEntries]: E }

const errorEntries: unique symbol = Symbol.for('svc.errors')

/** Default next steps by status, for errors without one; the command line adds the command to `svc help`. */
const NEXT: Readonly<Record<number, string>> = { 400: 'svc help', 422: 'svc help', 500: 'svc logs', 507: 'svc doctor' }

/** Declares errors; `Errors.some_code('text')` makes the fault. Codes are part of the contract and never change. */
export function defineErrors<const E extends Readonly<Record<string, ErrorEntry>>>(entries: E): ErrorTable<E> {
  const makers = Object.entries(entries).map(([code, { status, message, next = NEXT[status] }]) => {
    const make = (text?: string, more: FaultMore = {}) => new Fault(code, status, text ?? message, { next, ...more })
    return [code, Object.assign(make, { code, status })] as const
  })
  return { ...Object.fromEntries(makers), [errorEntries]: entries } as ErrorTable<E>
}

/** The declared entries of a table, by code. */
export function errorsOf(table: ErrorTable<Readonly<Record<string, ErrorEntry>>>): Record<string, ErrorEntry> {
  return table[errorEntries]
}

/** Errors of the kernel for plugins. Those of HTTP are in `HttpErrors`, those of records in `RecordErrors`. */
export const KernelErrors = defineErrors({
  invalid_request: { status: 400, message: 'the request does not match the schema of this route' },
  invalid_cursor: { status: 400, message: 'the cursor does not belong to this list; start again without it' },
  invalid_query: { status: 400, message: 'the query does not match the schema of this route' },
  identity_required: {
    status: 401,
    message: 'HTTP requests need a token',
    next: 'send the header `Authorization: Bearer <token>`; `svc auth token` prints one. The Unix socket needs none',
  },
  forbidden: { status: 403, message: 'this actor may not do that' },
  owner_only: { status: 403, message: 'only the service that owns records of this kind may write them' },
  route_not_found: { status: 404, message: 'no such route; GET /api/openapi.json lists all' },
  record_not_found: { status: 404, message: 'no such record', next: 'svc resource list' },
  version_conflict: { status: 409, message: 'the record has another version; read it again and repeat' },
  change_under_way: { status: 409, message: 'a plugin that starts or stops cannot change plugins; use a service loop' },
  payload_too_large: { status: 413, message: 'the body is too large' },
  invalid_kind: { status: 422, message: 'a kind name is lower case words joined by dots, at most 64 characters' },
  invalid_scope: { status: 422, message: 'the scope binding is not valid' },
  invalid_version: { status: 422, message: 'expected_version is not valid here' },
  invalid_filter: { status: 422, message: 'the filter is not valid' },
  internal: { status: 500, message: 'an internal error; the daemon log has the details' },
  unavailable: { status: 503, message: 'this part of the daemon is not available now; try again' },
  shutting_down: { status: 503, message: 'the daemon is stopping' },
  file_unwritable: { status: 503, message: 'a file cannot be written', next: 'svc doctor' },
  store_failed: { status: 503, message: 'the store failed and accepts no writes; restart the daemon' },
  disk_full: { status: 507, message: 'the disk is almost full; free some space and try again' },
})

/** The fault for anything thrown: itself, or `internal`, whose cause goes to the log only. */
export function faultOf(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown
  const { code } = Object(thrown) as { code?: unknown }
  if (code === 'store_failed') return KernelErrors.store_failed(messageOf(thrown), { cause: thrown })
  if (code === 'file_unwritable' || code === 'EROFS') return KernelErrors.file_unwritable(messageOf(thrown))
  // A full disk, reported by the store or by any other file access.
  if (code === 'disk_full' || code === 'ENOSPC' || code === 'EDQUOT') return KernelErrors.disk_full(messageOf(thrown))
  return KernelErrors.internal(undefined, { cause: thrown ?? new TypeError(`${thrown} was thrown`) })
}

/** Text of anything thrown, for logs and diagnostics. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'a value without a message was thrown'
  }
}
