export interface InjectRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; bytes as they are, with the content type that the headers name. */
  readonly body?: unknown
}

export interface InjectReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** As text; `bytes` for what is none. */
  readonly body: string
  readonly bytes: Uint8Array
}
